"""News for the owner that came while nobody looked: kept until seen, told on screens, in a place of their own."""
