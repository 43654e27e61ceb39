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

    def deflated(content: bytes) -> bytes:
        """All of ``content`` as one raw deflate stream."""
        stream = zlib.compressobj(1, zlib.DEFLATED, -15)
        return stream.compress(content) + stream.flush()
else:
    CODEC = "isal"
    _isal_error: Any = isal_zlib.error  # its stub calls the class an instance
    InflateError = (_isal_error, zlib.error)
    crc32, _decompressor, _compressor = isal_zlib.crc32, isal_zlib.decompressobj, isal_zlib.compressobj

    def deflated(content: bytes) -> bytes:
        """All of ``content`` as one raw deflate stream."""
        return igzip_lib.compress(content, 1, igzip_lib.COMP_DEFLATE)


_BLOCK = Struct("<BHH")
_BLOCK_BYTES = 0xFFFF


class Deflating:
    """A raw deflate stream made piece by piece; every piece ends on a byte and stands in the output at once."""

    def __init__(self) -> None:
        self._stream = _compressor(1, zlib.DEFLATED, -15)

    def piece(self, content: bytes, *, plain: bool = False) -> bytes:
        """The output for ``content``; ``plain`` keeps it as it is, in stored blocks."""
        packed: bytes = self._stream.compress(content) + self._stream.flush(zlib.Z_SYNC_FLUSH)
        # The compressor has seen the piece either way, as the reader will have: back references stay true.
        return _stored_blocks(content) if plain else packed

    def end(self) -> bytes:
        """What closes the stream."""
        last: bytes = self._stream.flush()
        return last


def _stored_blocks(content: bytes) -> bytes:
    parts: list[bytes] = []
    for at in range(0, len(content), _BLOCK_BYTES):
        part = content[at : at + _BLOCK_BYTES]
        parts += (_BLOCK.pack(0, len(part), len(part) ^ 0xFFFF), part)
    return b"".join(parts)


def inflating() -> Any:
    """A reader of one raw deflate stream, with the methods of ``zlib.decompressobj``."""
    return _decompressor(-15)
