"""Deflate and CRC-32: ISA-L where it is installed, three times as fast, otherwise zlib at its fastest level."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from struct import Struct
from typing import Any

crc32: Callable[..., int]
"""CRC-32 of some bytes, continued from a second argument."""
_decompressor: Callable[..., Any]
_compressor: Callable[..., Any]

try:
    from isal import igzip_lib, isal_zlib
except ImportError:
    CODEC = "zlib"
    InflateError: tuple[type[Exception], ...] = (zlib.error,)
    crc32, _decompressor, _compressor = zlib.crc32, zlib.decompressobj, zlib.compressobj
    _LEVEL = _SMALLER = 1

    def deflated(content: bytes) -> bytes:
        """All of ``content`` as one raw deflate stream."""
        stream = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
        return stream.compress(content) + stream.flush()
else:
    CODEC = "isal"
    _isal_error: Any = isal_zlib.error  # its stub calls the class an instance
    InflateError = (_isal_error, zlib.error)
    crc32, _decompressor, _compressor = isal_zlib.crc32, isal_zlib.decompressobj, isal_zlib.compressobj
    # Its fastest. The higher ones, a tenth smaller, give other bytes for the same content in one process of a
    # hundred, and an egg's bytes must follow from what is in it.
    _LEVEL, _SMALLER = 0, 2

    def deflated(content: bytes) -> bytes:
        """All of ``content`` as one raw deflate stream."""
        return igzip_lib.compress(content, _LEVEL, igzip_lib.COMP_DEFLATE)


_BLOCK = Struct("<BHH")
_BLOCK_BYTES = 0xFFFF


END = b"\x03\x00"
"""The end of a stream that was made of pieces: an empty last block."""


def deflated_piece(content: bytes) -> bytes:
    """``content`` as a piece of a raw deflate stream.

    It ends on a byte and looks back to no other piece, so that pieces can be made in any order; any number of
    them and ``END`` are a stream.
    """
    stream = _compressor(_LEVEL, zlib.DEFLATED, -15)
    packed: bytes = stream.compress(content) + stream.flush(zlib.Z_SYNC_FLUSH)
    return packed


def plain_piece(content: bytes) -> bytes:
    """The same, with ``content`` kept as it is, in stored blocks."""
    parts: list[bytes] = []
    for at in range(0, len(content), _BLOCK_BYTES):
        part = content[at : at + _BLOCK_BYTES]
        parts += (_BLOCK.pack(0, len(part), len(part) ^ 0xFFFF), part)
    return b"".join(parts)


def gzipping() -> Any:
    """A writer of one gzip file without a name or time, with the methods of ``zlib.compressobj``.

    Its bytes follow from the content and from the pieces in which it comes.
    """
    return _compressor(_LEVEL, zlib.DEFLATED, 31)


def gzipping_smaller() -> Any:
    """The same, an eighth smaller; but its bytes do not follow from the content."""
    return _compressor(_SMALLER, zlib.DEFLATED, 31)


def gunzipping() -> Any:
    """A reader of one gzip file, with the methods of ``zlib.decompressobj``; raises ``InflateError``."""
    return _decompressor(31)


def inflating() -> Any:
    """A reader of one raw deflate stream, with the methods of ``zlib.decompressobj``."""
    return _decompressor(-15)
