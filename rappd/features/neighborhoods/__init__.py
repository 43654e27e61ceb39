"""Neighborhoods as places: joined, left, shown, and published in."""
