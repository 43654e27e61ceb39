"""Other machines: list, pair, rename, share, revoke; and published brainstems over plain http."""
