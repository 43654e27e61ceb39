"""Packs a workspace into an egg of a published format, without its secrets."""
