"""Eggs: the parsed form, integrity, encryption, frames, egg strings (RAPP v1 §18.10)."""
