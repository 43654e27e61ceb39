"""Settings in force, and the log, for the page."""
