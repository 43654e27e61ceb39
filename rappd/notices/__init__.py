"""News for the owner that came while nobody looked: kept until seen, told in the next turn and on screens."""
