"""This package beside others, and beside what the machine can do, in paired rounds. `python -m benchmarks.all` from the root."""
