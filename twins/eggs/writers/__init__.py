"""Packing: what lives in a workspace becomes an egg, in a published shape, without its secrets."""
