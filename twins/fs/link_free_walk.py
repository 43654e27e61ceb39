"""Reaching files below a folder without ever going through a link, however the folder changes meanwhile."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

import msgspec

from agents.storage.safe_fs import MAX_BYTES
from agents.storage.safe_open import open_folder, open_made_folder, open_regular, open_root, read_regular_file

_BLOCKED = frozenset({errno.ELOOP, errno.ENOTDIR})
_CHUNK = 1 << 20


class FileKind(StrEnum):
    """The kind of an entry."""

    NOTHING = "nothing"
    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"
    """A pipe, a socket, a device."""
    BLOCKED = "blocked"
    """The way there leads through a link or a file."""


class FoundFile(msgspec.Struct, frozen=True):
    """An entry of a folder; ``size`` of a file in bytes, ``ident`` its (disk, inode)."""

    kind: FileKind
    size: int = 0
    ident: tuple[int, int] = (0, 0)


NOTHING = FoundFile(FileKind.NOTHING)
_KINDS = {stat.S_IFREG: FileKind.FILE, stat.S_IFDIR: FileKind.FOLDER, stat.S_IFLNK: FileKind.LINK}


class LinkFreeFolder:
    """Files below one base folder, by relative path with ``/`` between folders.

    No component below the base, nor the base itself, is followed when it is a link: the folders are
    opened one inside the other. Keeps the folder it used last open; close it, or use it as a context.
    """

    def __init__(self, base: Path, *, durable: bool = True) -> None:
        """``durable``: folders that are made survive a loss of power."""
        self.base = base
        self._durable = durable
        self._open: tuple[str, int] | None = None

    def __enter__(self) -> LinkFreeFolder:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the folder that is open."""
        if self._open is not None:
            os.close(self._open[1])
            self._open = None

    def folder(self, path: str, *, make: bool = False) -> int:
        """A handle on the folder at ``path`` ("" is the base), valid until the next call of anything here.

        Raises ``FileNotFoundError``, or ``OSError`` with ENOTDIR or ELOOP when something else is in the way.
        """
        if self._open is not None and self._open[0] == path:
            return self._open[1]
        if make:
            self.base.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle = open_root(self.base, follow=False)
        if path:
            names = path.split("/")
            try:
                inner = (
                    open_made_folder(handle, names, durable=self._durable)
                    if make
                    else open_folder(handle, names)
                )
            finally:
                os.close(handle)
            handle = inner
        self.close()
        self._open = (path, handle)
        return handle

    def find(self, path: str) -> FoundFile:
        """The entry at ``path``."""
        above, name = split(path)
        try:
            found = os.stat(name, dir_fd=self.folder(above), follow_symlinks=False)
        except FileNotFoundError:
            return NOTHING
        except OSError as error:
            if error.errno in _BLOCKED:
                return FoundFile(FileKind.BLOCKED)
            raise
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), FileKind.OTHER)
        return FoundFile(kind, found.st_size if kind is FileKind.FILE else 0, (found.st_dev, found.st_ino))

    def chunks(self, path: str) -> Iterator[bytes]:
        """The bytes of the file at ``path``. Raises ``OSError`` when it is anything else than a file."""
        above, name = split(path)
        handle, _ = open_regular(self.folder(above), (name,))
        try:
            while chunk := os.read(handle, _CHUNK):
                yield chunk
        finally:
            os.close(handle)

    def content(self, path: str, max_bytes: int = MAX_BYTES) -> bytes:
        """The whole of the file at ``path``. Raises ``OSError``, ``UnsafeFileError`` above ``max_bytes``."""
        above, name = split(path)
        return read_regular_file(self.folder(above), (name,), max_bytes)

    def sha256(self, path: str) -> str:
        """SHA-256 of the file at ``path``; "" when no file lies there."""
        digest = hashlib.sha256()
        try:
            for chunk in self.chunks(path):
                digest.update(chunk)
        except FileNotFoundError:
            return ""
        except OSError as error:
            if error.errno in _BLOCKED:
                return ""
            raise
        return digest.hexdigest()

    def missing_folders(self, path: str) -> list[str]:
        """The folders above ``path`` that are not there yet, outermost first; never the base."""
        parts = path.split("/")[:-1]
        found: list[str] = []
        for count in range(len(parts), 0, -1):
            above = "/".join(parts[:count])
            if self.find(above).kind is not FileKind.NOTHING:
                break
            found.append(above)
        return found[::-1]


def split(path: str) -> tuple[str, str]:
    """(folder, name) of a relative path."""
    above, _, name = path.rpartition("/")
    return above, name


@contextmanager
def walks(home: Path) -> Iterator[LinkFreeFolders]:
    """Walks by their base, all closed at the end."""
    opened = LinkFreeFolders(home)
    try:
        yield opened
    finally:
        for walk in opened.values():
            walk.close()


class LinkFreeFolders(dict[str, LinkFreeFolder]):
    """One ``LinkFreeFolder`` per base, made when asked for. A base is named relative to ``home`` (see ``name_of``)."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._home = home

    def __missing__(self, base: str) -> LinkFreeFolder:
        self[base] = LinkFreeFolder(self._home / base)
        return self[base]


def name_of(folder: Path, home: Path) -> str:
    """A folder's name in records: relative to the home, so that it holds after a move; else absolute."""
    return folder.relative_to(home).as_posix() if folder.is_relative_to(home) else str(folder)


def files_below(base: Path) -> Sequence[str]:
    """Every path below ``base`` that is not a folder, sorted, links not followed."""
    found: list[str] = []
    for folder, folders, files in os.walk(base, onerror=_raise):
        above = os.path.relpath(folder, base).replace(os.sep, "/")
        prefix = "" if above == "." else f"{above}/"
        links = [name for name in folders if Path(folder, name).is_symlink()]
        found += [prefix + name for name in (*files, *links)]
    return sorted(found)


def _raise(error: OSError) -> None:
    raise error
