"""Credentials for calls without pairing."""
