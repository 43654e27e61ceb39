"""Compressed files and archives as what they hold, for the look for secrets: bounded, and never a failure.

Formats are told by their first bytes. What is damaged, encrypted or of another format gives as much as can be read.
"""

from __future__ import annotations

import bz2
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Any, Protocol

MOST_PACKED = 16 << 20
"""Bytes of one packed file that are kept to look into; of a longer one its beginning."""
MOST_UNPACKED = 32 << 20
"""Bytes that one file gives at most, with all that lies inside it: a bomb of a kilobyte costs no more."""
_PIECE = 1 << 20
_MEMBERS = 2000
_TAR_AT = 257
_BLOCK = 512


class _Decompressor(Protocol):
    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


_STREAMS: tuple[tuple[bytes, Callable[[], Any]], ...] = (
    (b"\x1f\x8b", lambda: zlib.decompressobj(31)),
    (b"BZh", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\0", lzma.LZMADecompressor),
    (b"]\0\0", lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE)),
    *((bytes((0x78, level)), zlib.decompressobj) for level in (0x01, 0x5E, 0x9C, 0xDA)),
)
_MAGIC = tuple(magic for magic, _ in _STREAMS)
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")
_FAILURES = (
    OSError, EOFError, ValueError, RuntimeError, NotImplementedError, KeyError, IndexError, OverflowError, MemoryError,
    zlib.error, lzma.LZMAError, zipfile.BadZipFile, tarfile.TarError,
)  # fmt: skip


class Allowance:
    """The bytes that may still be unpacked for one file."""

    def __init__(self, left: int = MOST_UNPACKED) -> None:
        self.left = left

    def taken(self, content: bytes) -> bytes:
        """``content``, cut where the allowance ends."""
        content = content[: max(0, self.left)]
        self.left -= len(content)
        return content


def is_packed(start: bytes) -> bool:
    """True when a file that begins with these bytes can be looked into."""
    return start.startswith(_MAGIC) or start.startswith(_ZIP) or _is_tar(start)


def unpacked(content: bytes, allowance: Allowance) -> Iterator[tuple[str, bytes]]:
    """(name, content) of what lies in a packed file, one level down; the name is "" for a stream. Raises nothing."""
    if content.startswith(_ZIP):
        yield from _safely(_from_zip(content, allowance))
    elif _is_tar(content):
        yield from _safely(_from_tar(content, allowance))
    else:
        make = next((make for magic, make in _STREAMS if content.startswith(magic)), None)
        if make is not None:
            yield "", _from_stream(content, make, allowance)


def _is_tar(start: bytes) -> bool:
    return start[_TAR_AT : _TAR_AT + 5] == b"ustar" and len(start) >= _BLOCK


def _safely(members: Iterator[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    try:
        yield from members
    except _FAILURES:
        return


def _from_stream(content: bytes, make: Callable[[], _Decompressor], allowance: Allowance) -> bytes:
    """The content of all streams in a row, as far as they can be read."""
    found = bytearray()
    try:
        while content and allowance.left > 0:
            stream = make()
            while not stream.eof and allowance.left > 0:
                piece = stream.decompress(content, min(_PIECE, allowance.left))
                content = getattr(stream, "unconsumed_tail", b"")
                found += allowance.taken(piece)
                if not piece and not content and getattr(stream, "needs_input", True):
                    break  # cut off
            if not stream.eof:
                break
            content = stream.unused_data.lstrip(b"\0")
    except _FAILURES:
        pass
    return bytes(found)


def _from_zip(content: bytes, allowance: Allowance) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist()[:_MEMBERS]:
            if member.is_dir() or member.flag_bits & 1 or allowance.left <= 0:
                continue
            try:
                with archive.open(member) as file:
                    yield member.filename, allowance.taken(file.read(allowance.left))
            except _FAILURES:
                continue


def _from_tar(content: bytes, allowance: Allowance) -> Iterator[tuple[str, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
        for count, member in enumerate(archive):
            if count >= _MEMBERS or allowance.left <= 0:
                return
            file = archive.extractfile(member) if member.isreg() else None
            if file is not None:
                yield member.name, allowance.taken(file.read(allowance.left))
