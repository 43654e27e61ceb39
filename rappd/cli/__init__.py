"""The command line itself: its commands, the two printers, and asking a home with and without a daemon."""
