"""Answers of model servers, read from bytes without I/O: framing, text, thoughts, calls, endings."""
