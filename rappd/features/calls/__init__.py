"""Calls of other machines, one or several, and the outbox."""
