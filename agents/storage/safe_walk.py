"""Walks folders that untrusted code can write, without ever following a symbolic link.

The one walker for workspaces and other places that agents or eggs write to: each folder is opened beneath one
that is open already, so a folder that becomes a link meanwhile leads nowhere.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple, Self

from agents.storage.safe_open import open_folder, open_made_folder, open_regular, open_root, read_regular_file
from agents.storage.sparse_file import is_sparse, read_hole

MAX_BYTES = 16 << 20
"""The largest file that is read whole unless a caller says otherwise."""
MAX_DEPTH = 60
"""Folders inside each other that workspaces are searched for files in; an egg's names have 64 components."""
_GONE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})
_BLOCKED = frozenset({errno.ELOOP, errno.ENOTDIR})
_CHUNK = 1 << 20


def _any(_: str) -> bool:
    return True


def raise_unless_gone(_: str, error: OSError) -> None:
    """Raises ``error``, unless the folder went away meanwhile or became something else."""
    if error.errno not in _GONE:
        raise error


def pass_over(_: str, error: OSError) -> None:
    """Treats a folder that cannot be listed as empty."""


def walk(
    folder: int,
    start: str = "",
    *,
    enters: Callable[[str], bool] = _any,
    wants: Callable[[str], bool] = _any,
    failed: Callable[[str, OSError], None] = raise_unless_gone,
) -> Iterator[tuple[str, os.stat_result]]:
    """(path, status) of everything below ``start`` in an open folder, each folder before what is in it.

    ``enters`` is asked once for the path of each folder, ``wants`` for the path of all else; what they refuse is
    not yielded. ``failed`` is told of a folder that cannot be listed.
    """
    pending = [start]
    while pending:
        above = pending.pop()
        try:
            found = _listed(folder, above, wants)
        except OSError as error:
            failed(above, error)
            continue
        for path, status in found:
            if stat.S_ISDIR(status.st_mode):
                if not enters(path):
                    continue
                pending.append(path)
            yield path, status


def _listed(folder: int, above: str, wants: Callable[[str], bool]) -> list[tuple[str, os.stat_result]]:
    found = []
    handle = open_folder(folder, above.split("/")) if above else folder
    prefix = f"{above}/" if above else ""
    try:
        with os.scandir(handle) as entries:
            for entry in entries:
                path = prefix + entry.name
                try:
                    if entry.is_dir(follow_symlinks=False) or wants(path):
                        found.append((path, entry.stat(follow_symlinks=False)))
                except OSError as error:
                    if error.errno not in _GONE:
                        raise
    finally:
        if handle != folder:
            os.close(handle)
    return found


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


class FoundFile(NamedTuple):
    """An entry of a folder; ``size`` of a file in bytes, ``ident`` its (disk, inode), ``links`` how many names it has."""

    kind: FileKind
    size: int = 0
    ident: tuple[int, int] = (0, 0)
    links: int = 1


NOTHING = FoundFile(FileKind.NOTHING)
_KINDS = {stat.S_IFREG: FileKind.FILE, stat.S_IFDIR: FileKind.FOLDER, stat.S_IFLNK: FileKind.LINK}


class LinkFreeFolder:
    """Files below one base folder, by relative path with ``/`` between folders.

    No component below the base is followed when it is a link. The base, and the folder that was used last,
    stay open; close it, or use it as a context.
    """

    def __init__(self, base: Path, *, follow: bool = False, durable: bool = True) -> None:
        """``follow``: the base may itself be a link. ``durable``: folders that are made survive a loss of power."""
        self.base = base
        self._follow = follow
        self._durable = durable
        self._root: int | None = None
        self._open: tuple[str, int] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lets go of the folders that are open."""
        self._leave()
        if self._root is not None:
            os.close(self._root)
            self._root = None

    def folder(self, path: str, *, make: bool = False) -> int:
        """A handle on the folder at ``path`` ("" is the base), valid until the next call of anything here.

        Raises ``FileNotFoundError``, or ``OSError`` with ENOTDIR or ELOOP when something else is in the way.
        """
        if self._open is not None and self._open[0] == path:
            return self._open[1]
        if self._root is None:
            if make:
                self.base.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._root = open_root(self.base, follow=self._follow)
        if not path:
            return self._root
        names = path.split("/")
        if make:
            handle = open_made_folder(self._root, names, durable=self._durable)
        else:
            handle = open_folder(self._root, names)
        self._leave()
        self._open = (path, handle)
        return handle

    def entries(self, path: str) -> list[tuple[str, os.stat_result]]:
        """(name, status) of what lies in the folder at ``path``, in no order. Raises as ``folder``."""
        return _listed(self.folder(path), "", _any)

    def walk(
        self,
        start: str = "",
        *,
        enters: Callable[[str], bool] = _any,
        failed: Callable[[str, OSError], None] = raise_unless_gone,
    ) -> Iterator[tuple[str, os.stat_result]]:
        """As the function ``walk``, from the base. Raises ``OSError`` when the base cannot be opened."""
        return walk(self.folder(""), start, enters=enters, failed=failed)

    def files(self) -> list[str]:
        """The path of everything that is not a folder, links too, sorted. Raises ``OSError``."""
        return sorted(path for path, status in self.walk() if not stat.S_ISDIR(status.st_mode))

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
        return FoundFile(
            kind, found.st_size if kind is FileKind.FILE else 0, (found.st_dev, found.st_ino), found.st_nlink
        )

    def open(self, path: str) -> tuple[int, os.stat_result]:
        """A descriptor of the regular file at ``path``, and its status. Raises ``OSError``."""
        above, name = split(path)
        return open_regular(self.folder(above), (name,))

    def chunks(self, path: str) -> Iterator[bytes]:
        """The bytes of the file at ``path``. Raises ``OSError`` when it is anything else than a file."""
        handle, status = self.open(path)
        sparse = is_sparse(status)
        try:
            while chunk := (sparse and read_hole(handle, _CHUNK)) or os.read(handle, _CHUNK):
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

    def _leave(self) -> None:
        if self._open is not None:
            os.close(self._open[1])
            self._open = None


def has_other_names(status: os.stat_result) -> bool:
    """True for a file with more than one hard link: one name may lie where only its owner reads, such as ``~/.ssh``.

    A link made by untrusted code brings that file's content here without a copy, and looks like any file.
    """
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def split(path: str) -> tuple[str, str]:
    """(folder, name) of a relative path."""
    above, _, name = path.rpartition("/")
    return above, name


class LinkFreeFolders(dict[str, LinkFreeFolder]):
    """One ``LinkFreeFolder`` per base, made when asked for and closed at the end. Bases are relative to ``home``."""

    def __init__(self, home: Path) -> None:
        super().__init__()
        self._home = home

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for folder in self.values():
            folder.close()

    def __missing__(self, base: str) -> LinkFreeFolder:
        self[base] = LinkFreeFolder(self._home / base)
        return self[base]
