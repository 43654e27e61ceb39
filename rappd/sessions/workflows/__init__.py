"""Workflows: steps that a Coordinator asks participants of a session, one after the other."""
