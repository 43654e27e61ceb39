"""Layer 1, wire formats and identity: the envelope, its codecs, keys, signatures, tokens.

Pure: no sockets, no files, no clock.
"""
