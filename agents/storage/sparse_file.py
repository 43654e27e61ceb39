"""Holes of files (disk images, databases): they are not read, and not written where they come again as zeros."""

from __future__ import annotations

import errno
import os

_BLOCK = 64 << 10
_LEAST = 4 << 10  # a hole is made of blocks of the file system; fewer bytes take a block in any case
_ZEROS = bytes(1 << 20)


def is_sparse(status: os.stat_result) -> bool:
    """True for a file that takes less room on its disk than it has bytes."""
    return status.st_blocks * 512 < status.st_size


def read_hole(handle: int, count: int) -> bytes | None:
    """The next ``count`` bytes of a file where they all lie in a hole: zeros; else None, and nothing is read."""
    at = os.lseek(handle, 0, os.SEEK_CUR)
    try:
        data = os.lseek(handle, at, os.SEEK_DATA)
    except OSError as error:
        if error.errno != errno.ENXIO or os.fstat(handle).st_size < at + count:
            return None  # no such call here, or the file ends before
        data = at + count
    if data < at + count:
        os.lseek(handle, at, os.SEEK_SET)
        return None
    os.lseek(handle, at + count, os.SEEK_SET)
    return _ZEROS if count == len(_ZEROS) else bytes(count)


def is_hole(content: bytes) -> bool:
    """True for a long run of zeros, which ``write_sparse`` would skip whole."""
    return all(_is_zero(content, at, min(at + _BLOCK, len(content))) for at in range(0, len(content), _BLOCK))


def write_sparse(handle: int, content: bytes) -> None:
    """Writes ``content`` at the end of a file that is being made; long runs of zeros are skipped.

    ``end_sparse`` gives the file its length after the last piece.
    """
    start = at = 0
    view = memoryview(content)
    while at < len(content):
        end = min(at + _BLOCK, len(content))
        if _is_zero(content, at, end):
            _write(handle, view[start:at])
            os.lseek(handle, end - at, os.SEEK_CUR)
            start = end
        at = end
    _write(handle, view[start:])


def end_sparse(handle: int) -> None:
    """Gives a file that ``write_sparse`` wrote its length, in case it ends with zeros."""
    end = os.lseek(handle, 0, os.SEEK_CUR)
    if os.fstat(handle).st_size < end:
        os.ftruncate(handle, end)


def _is_zero(content: bytes, start: int, end: int) -> bool:
    if end - start < _LEAST or content[start] or content[end - 1]:
        return False
    return content[start:end] == _ZEROS[: end - start]


def _write(handle: int, rest: memoryview) -> None:
    while rest:
        rest = rest[os.write(handle, rest) :]
