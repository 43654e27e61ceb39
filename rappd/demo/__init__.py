"""``rappd demo``: three machines on this one, for a minute."""
