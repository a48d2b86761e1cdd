"""The widget panel without its widgets: what can be chosen, run, compared, copied and drawn, in plain Python."""
