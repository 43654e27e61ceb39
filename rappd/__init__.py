"""Floor 5, the daemon: doors, gate, supervision, store, command line, web pages."""
