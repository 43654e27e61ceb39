"""Snapshots of a whole neighborhood: reading the members, one egg of all, planning and restoring it."""
