"""Cartridges: JSON files that hold something living. Load, run, save, and again, on any machine."""
