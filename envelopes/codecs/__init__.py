"""Codecs: Emergence JSON, /chat, canonical JSON, hash chain."""
