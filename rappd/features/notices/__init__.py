"""News for the owner that came while nobody looked."""
