"""Content in pieces of one size, whatever it comes from, so that its origin does not show in an archive."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from agents.storage.sparse_file import is_sparse, read_hole
from twins.errors import BadFileError
from twins.fs.untrusted_names import shown

PIECE = 1 << 20
"""Bytes in memory at once. Content up to this size is one piece; more of it is streamed."""


def of_bytes(content: bytes) -> Iterator[bytes]:
    """Pieces of what is in memory already."""
    if len(content) <= PIECE:
        yield content
        return
    for at in range(0, len(content), PIECE):
        yield content[at : at + PIECE]


def of_parts(parts: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes as ``parts``, cut anew."""
    buffer = bytearray()
    for part in parts:
        if not buffer and len(part) == PIECE:
            yield part
            continue
        rest = memoryview(part)
        while len(buffer) + len(rest) >= PIECE:
            missing = PIECE - len(buffer)
            yield bytes(buffer + rest[:missing])
            buffer.clear()
            rest = rest[missing:]
        buffer += rest
    if buffer:
        yield bytes(buffer)


def opened(path: Path, name: str) -> tuple[int, int]:
    """Descriptor and size of a regular file; links are not followed. Raises ``BadFileError``, calling it ``name``."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "no such path"
        raise BadFileError(f"{shown(name)} cannot be read: {why}", do="look at the file") from error
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        raise BadFileError(f"{shown(name)} is no regular file", do="leave it out")
    return handle, status.st_size


def of_file(handle: int, size: int, name: str) -> Iterator[bytes]:
    """The first ``size`` bytes of an open file. Raises ``BadFileError`` where there are fewer by now."""
    sparse = is_sparse(os.fstat(handle))
    for at in range(0, size, PIECE):
        count = min(PIECE, size - at)
        hole = read_hole(handle, count) if sparse else None
        yield hole or exactly(handle, count, name)


def exactly(handle: int, count: int, name: str) -> bytes:
    """The next ``count`` bytes of an open file. Raises ``BadFileError`` where there are fewer by now."""
    octets = os.read(handle, count)
    while len(octets) < count:
        more = os.read(handle, count - len(octets))
        if not more:
            raise BadFileError(f"{shown(name)} changed while it was packed", do="try again")
        octets += more
    return octets
