"""Data sloshing (RAPP v1 §6): what an agent already knows before the first line of its perform runs."""
