"""Floor 5, the daemon: listeners, gate, supervision, store, command line, web pages."""
