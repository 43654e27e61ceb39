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
from types import TracebackType
from typing import NamedTuple, Self

from agents.storage.safe_open import open_folder, open_regular, open_root
from twins.eggs.writers.exclusions import ExclusionReason
from twins.errors import BadFileError, TwinConflictError
from twins.zip.names import shown
from twins.zip.writer import PIECE

MAX_DEPTH = 60
"""Folders inside each other; an egg's names have 64 components at most."""

Verdict = Callable[[str], ExclusionReason | None]
"""A path below the root, to why it stays behind; None lets it travel."""
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
"""It went away meanwhile, or became a link."""


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
        self._name = root.name
        self._folders: list[tuple[str, int]] = []
        try:
            self._root = open_root(root)
        except OSError as error:
            raise BadFileError(
                f"{root.name} cannot be read: {error.strerror}", do="Look at the folder."
            ) from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave(0)
        os.close(self._root)

    def walk(self, start: str, verdict: Verdict) -> Iterator[SourceFile]:
        """Everything below ``start`` ("" for the root) in no particular order; nothing where it is missing.

        What stays behind is named once, a folder without what is in it. Raises ``BadFileError`` for a folder
        that cannot be read or lies too deep.
        """
        pending = [start] if not start or self._is_folder(start) else []
        while pending:
            folder = pending.pop()
            if folder.count("/") >= MAX_DEPTH:
                raise BadFileError(
                    f"{shown(folder)} lies too deep for an egg.", do="Move it up, or leave it out."
                )
            for name, status in self._listed(folder):
                path = f"{folder}/{name}" if folder else name
                why = verdict(path)
                if why is None and stat.S_ISLNK(status.st_mode):
                    why = ExclusionReason.LINK
                if why is None and stat.S_ISDIR(status.st_mode):
                    pending.append(path)
                    continue
                if why is None and not stat.S_ISREG(status.st_mode):
                    why = ExclusionReason.NO_FILE
                yield SourceFile(path, status.st_size, why)

    def size(self, path: str) -> int | None:
        """The bytes of a regular file; None when there is none of that name, or only a link."""
        folder, _, name = path.rpartition("/")
        try:
            status = os.stat(name, dir_fd=self._enter(folder), follow_symlinks=False)
        except OSError:
            return None
        return status.st_size if stat.S_ISREG(status.st_mode) else None

    def open(self, path: str) -> bytes | Iterator[bytes] | None:
        """The file's content as it is now: whole up to ``PIECE`` bytes, else piece by piece; None when gone.

        Raises ``BadFileError``, the iterator ``TwinConflictError`` when the file shrinks meanwhile.
        """
        folder, _, name = path.rpartition("/")
        try:
            descriptor, status = open_regular(self._enter(folder), (name,))
        except OSError as error:
            if error.errno in _GONE:
                return None
            raise BadFileError(
                f"{shown(path)} cannot be read: {error.strerror}", do="Look at the file, or move it away."
            ) from error
        file = os.fdopen(descriptor, "rb", buffering=0)
        if status.st_size > PIECE:
            return _large(file, path, status.st_size)
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

    def _listed(self, folder: str) -> Iterator[tuple[str, os.stat_result]]:
        try:
            entries = os.scandir(self._enter(folder))
        except OSError as error:
            if error.errno in _GONE:
                return
            raise BadFileError(
                f"{shown(folder or self._name)} cannot be read: {error.strerror}", do="Look at the folder."
            ) from error
        with entries:
            found = []
            for entry in entries:
                try:
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
                except FileNotFoundError:
                    continue
        yield from found

    def _is_folder(self, path: str) -> bool:
        try:
            self._enter(path)
        except OSError:
            return False
        return True

    def _enter(self, folder: str) -> int:
        """A handle of ``folder``; the way to the last one stays open, since neighbours come in a row."""
        names = folder.split("/") if folder else []
        common = 0
        for (held, _), name in zip(self._folders, names, strict=False):
            if held != name:
                break
            common += 1
        self._leave(common)
        for name in names[common:]:
            above = self._folders[-1][1] if self._folders else self._root
            self._folders.append((name, open_folder(above, (name,))))
        return self._folders[-1][1] if self._folders else self._root

    def _leave(self, depth: int) -> None:
        while len(self._folders) > depth:
            os.close(self._folders.pop()[1])


def _large(file: io.FileIO, path: str, size: int) -> Iterator[bytes]:
    with file:
        while size:
            wanted = min(size, PIECE)
            yield _piece(file, path, wanted)
            size -= wanted


def _piece(file: io.FileIO, path: str, size: int) -> bytes:
    piece = os.read(file.fileno(), size)
    while len(piece) < size:
        more = os.read(file.fileno(), size - len(piece))
        if not more:
            raise TwinConflictError(f"{shown(path)} changed while it was packed.", do="Try again.")
        piece += more
    return piece
