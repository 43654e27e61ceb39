"""Pairing: two machines come to trust each other, by four words on two screens or by a code."""
