"""Snapshots of all machines: taken, tried, listed, compared and brought back; the machines that they hold."""
