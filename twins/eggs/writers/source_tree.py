"""Reading a folder that others write to meanwhile: no link is followed, at no depth and at no moment.

Agents run foreign code in their workspace. A folder that becomes a link between looking and reading must
not bring a key into an egg, so every file is opened step by step from the root.
"""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, Self

from agents.storage.safe_walk import MAX_DEPTH, FileKind, LinkFreeFolder, has_other_names
from agents.storage.sparse_file import is_sparse, read_hole
from twins.eggs.writers.exclusions import ExclusionReason
from twins.errors import BadFileError, TwinConflictError
from twins.fs.untrusted_names import shown
from twins.zip.writer import PIECE

Verdict = Callable[[str], ExclusionReason | None]
"""A path below the root, to why it stays behind; None lets it travel."""
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""Errors of a file that went away meanwhile, or became a link."""
_BARE = (b"", b"{}", b"[]")
_BARE_BYTES = 4


class SourceFile(NamedTuple):
    """One thing found: its path below the root, its size, and why it stays behind (None: it does not)."""

    path: str
    size: int
    why: ExclusionReason | None


class SourceTree:
    """One folder, held open. Paths are relative to it, with ``/`` between components."""

    def __init__(self, root: Path) -> None:
        """Opens ``root``, which may itself be reached through links. Raises ``BadFileError``."""
        self.folder = root
        self._files = LinkFreeFolder(root, follow=True)
        try:
            self._files.folder("")
        except OSError as error:
            raise BadFileError(
                f"{root.name} cannot be read: {error.strerror}", do="Look at the folder."
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def walk(self, start: str, verdict: Verdict) -> Iterator[SourceFile]:
        """Everything below ``start`` ("" for the root) in no particular order; nothing where it is missing.

        What stays behind is named once, a folder without what is in it. Raises ``BadFileError`` for a folder
        that cannot be read or lies too deep.
        """
        refused: list[SourceFile] = []

        def enters(path: str) -> bool:
            why = verdict(path)
            if why is not None:
                refused.append(SourceFile(path, 0, why))
            elif path.count("/") >= MAX_DEPTH:
                raise BadFileError(
                    f"{shown(path)} lies too deep for an egg.", do="Move it up, or leave it out."
                )
            return why is None

        for path, status in self._files.walk(start, enters=enters, failed=self._unreadable):
            if not stat.S_ISDIR(status.st_mode):
                yield SourceFile(path, status.st_size, verdict(path) or _no_file(status))
        yield from refused

    def is_bare(self, path: str) -> bool:
        """True for a folder without files, and for a file that holds nothing, as rappd makes them in every workspace."""
        found = self._files.find(path)
        if found.kind is FileKind.FOLDER:
            below = self._files.walk(path, enters=lambda _: True, failed=_fails)
            return all(stat.S_ISDIR(status.st_mode) for _, status in below)
        content = self.read(path, _BARE_BYTES) if self.size(path) in range(_BARE_BYTES + 1) else None
        return content is not None and content.strip() in _BARE

    def size(self, path: str) -> int | None:
        """The bytes of a regular file; None when there is none of that name, or only a link of either kind."""
        try:
            found = self._files.find(path)
        except OSError:
            return None
        return found.size if found.kind is FileKind.FILE and found.links == 1 else None

    def open(self, path: str) -> bytes | Iterator[bytes] | None:
        """The file's content as it is now: whole up to ``PIECE`` bytes, else piece by piece; None when gone.

        One that has become a hard link meanwhile counts as gone, too.

        Raises ``BadFileError``, the iterator ``TwinConflictError`` when the file shrinks meanwhile.
        """
        try:
            descriptor, status = self._files.open(path)
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise BadFileError(
                f"{shown(path)} cannot be read: {error.strerror}", do="Look at the file, or move it away."
            ) from error
        if has_other_names(status):
            os.close(descriptor)
            return None
        file = os.fdopen(descriptor, "rb", buffering=0)
        if status.st_size > PIECE:
            return _large(file, path, status)
        with file:
            return _piece(file, path, status.st_size)

    def read(self, path: str, limit: int) -> bytes | None:
        """The whole of a small file; None when there is none. Raises ``BadFileError`` above ``limit`` bytes."""
        size = self.size(path)
        if size is None:
            return None
        if size > limit:
            raise BadFileError(f"{shown(path)} is larger than {limit:,} bytes.", do="Look at the file.")
        content = self.open(path)
        return content if content is None or isinstance(content, bytes) else b"".join(content)

    def _unreadable(self, folder: str, error: OSError) -> None:
        if error.errno not in _GONE:
            raise BadFileError(
                f"{shown(folder or self.folder.name)} cannot be read: {error.strerror}",
                do="Look at the folder.",
            ) from error


def _fails(_: str, error: OSError) -> None:
    raise error


def _no_file(status: os.stat_result) -> ExclusionReason | None:
    if stat.S_ISLNK(status.st_mode):
        return ExclusionReason.LINK
    if has_other_names(status):
        return ExclusionReason.OTHER_NAMES
    return None if stat.S_ISREG(status.st_mode) else ExclusionReason.NO_FILE


def _large(file: io.FileIO, path: str, status: os.stat_result) -> Iterator[bytes]:
    size, sparse = status.st_size, is_sparse(status)
    with file:
        while size:
            wanted = min(size, PIECE)
            hole = read_hole(file.fileno(), wanted) if sparse else None
            yield hole or _piece(file, path, wanted)
            size -= wanted


def _piece(file: io.FileIO, path: str, size: int) -> bytes:
    piece = os.read(file.fileno(), size)
    while len(piece) < size:
        more = os.read(file.fileno(), size - len(piece))
        if not more:
            raise TwinConflictError(f"{shown(path)} changed while it was packed.", do="Try again.")
        piece += more
    return piece
