"""Search over everything that a caller may see."""
