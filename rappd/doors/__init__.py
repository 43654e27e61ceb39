"""Doors: a transport and a codec each, and nothing else."""
