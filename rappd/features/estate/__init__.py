"""The estate: what the owner made or belongs to, by rappids."""
