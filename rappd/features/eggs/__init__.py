"""Eggs: what was packed, hatched, sent and received, and whose are trusted."""
