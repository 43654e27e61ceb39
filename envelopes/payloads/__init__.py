"""Typed payloads of listeners: their form, and what is written from it: XSD, JSON Schema, examples, XML."""
