"""Eggs: files that hold something living. Archives, opening, packing (RAPP v1 §18.10)."""
