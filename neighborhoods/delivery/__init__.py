"""Envelopes to peers: at once with a few retries, or by a queue on the disk; and back with their answers."""
