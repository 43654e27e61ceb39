"""Floor 1, what travels: the record, its codecs, keys, signatures, tokens.

Pure: no sockets, no files, no clock of its own.
"""
