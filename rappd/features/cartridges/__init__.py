"""Cartridges: agents that are one file, run on their own."""
