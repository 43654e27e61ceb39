"""Active, archived, purged: a twin's state is its place on disk, and nothing else (RAPP v1 §18.13)."""
