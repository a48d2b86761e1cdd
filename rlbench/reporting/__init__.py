"""Parts of the report runner: parameters, execution of one notebook, what it found, the index page."""
