"""The files of one workspace on their way between machines, in one unnamed file: a kill leaves nothing of it."""

from __future__ import annotations

import errno
import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Self

from agents.storage.sparse_file import end_sparse, is_hole

_PIECE = 1 << 20


class SpooledFile(NamedTuple):
    """One file. ``mtime`` is in whole seconds."""

    name: str
    size: int
    sha256: str
    offset: int
    mtime: int = 0
    executable: bool = False


class Spool:
    """Contents one after the other on disk, their names in memory. A context manager."""

    def __init__(self, folder: Path) -> None:
        """``folder``: a private folder on the disk that has room for the contents."""
        self._file = tempfile.TemporaryFile(dir=folder, buffering=_PIECE)  # noqa: SIM115 - closed by __exit__
        self._end = 0
        self.files: list[SpooledFile] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(
        self, name: str, pieces: Iterable[bytes], *, mtime: int = 0, executable: bool = False
    ) -> SpooledFile:
        """Takes in one file. When ``pieces`` raises, nothing of it stays."""
        digest, size, has_hole = hashlib.sha256(), 0, False
        try:
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                if has_hole := is_hole(piece):
                    self._file.seek(len(piece), os.SEEK_CUR)
                else:
                    self._file.write(piece)
            if has_hole:
                self._file.flush()
                end_sparse(self._file.fileno())
        except BaseException:
            self._cut()
            raise
        added = SpooledFile(name, size, digest.hexdigest(), self._end, mtime, executable)
        self._end += size
        self.files.append(added)
        return added

    def drop_last(self) -> None:
        """Takes the last file out again, its bytes too."""
        self._end = self.files.pop().offset
        self._cut()

    def chunks(self, file: SpooledFile) -> Iterator[bytes]:
        """The content of one file; it may be read again."""
        self._file.flush()
        for at in range(file.offset, file.offset + file.size, _PIECE):
            yield os.pread(self._file.fileno(), min(_PIECE, file.offset + file.size - at), at)

    def _cut(self) -> None:
        self._file.seek(self._end)
        self._file.truncate()


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def disk_problem(error: OSError) -> str:
    """The cause, and what to do where that is plain."""
    if error.errno in _FULL:
        return "this machine's disk is full. Make room here, rerun."
    return (error.strerror or str(error) or "this machine's disk failed").lower()
