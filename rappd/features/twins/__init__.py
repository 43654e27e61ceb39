"""Twins: who lives here, their souls, checkpoints and buddies."""
