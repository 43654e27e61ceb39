"""Moments in words: English and German sentences about times, read without I/O."""
