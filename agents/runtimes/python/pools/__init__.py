"""The daemon's side: worker pools, calls, their limits and results."""
