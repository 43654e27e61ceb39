"""The command line: one module for each command, and the views that print results."""
