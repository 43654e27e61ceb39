"""Assembly of the daemon: start and stop, home, log, ports, metrics, upgrade."""
