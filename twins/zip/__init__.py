"""ZIP archives of eggs: hostile input is refused, output is deterministic."""
