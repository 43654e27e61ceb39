"""Active, archived, purged: the place of a twin on disk is its state (RAPP v1 §18.13)."""
