"""Cartridges: JSON files that hold a buddy or a LisPy agent. Load, run, save, on any machine."""
