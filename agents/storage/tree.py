"""The files below one root, reached without ever following a symbolic link.

Every folder on the way is opened by name from the one above it, so that neither a link in the tree
nor one that appears during the call leads anywhere else.
"""

from __future__ import annotations

import errno
import itertools
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from agents.storage.locking import lock
from agents.storage.paths import Parts

TEMPORARY_PREFIX = ".tmp-"
"""Files being written; one that stays behind belongs to a process that died."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# NONBLOCK: a named pipe in the tree must not make the reader wait.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_numbers = itertools.count()


class Entry(NamedTuple):
    name: str
    is_directory: bool


class Tree:
    """Files below ``root``, which is made when something is first written. All methods raise ``OSError``.

    Paths are ``Parts`` (``storage.paths``). Files are made for the owner only.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self.root = Path(root)

    def read(self, parts: Parts) -> bytes:
        """The content of a regular file."""
        with self._folder(parts[:-1]) as folder:
            descriptor = os.open(parts[-1], _FILE, dir_fd=folder)
            with os.fdopen(descriptor, "rb") as file:
                _must_be_regular(os.fstat(descriptor))
                return file.read()

    def stat(self, parts: Parts) -> os.stat_result:
        """What the entry itself is; a symbolic link is ``FileNotFoundError``."""
        with self._folder(parts[:-1]) as folder:
            found = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False) if parts else os.fstat(folder)
        if stat.S_ISLNK(found.st_mode):
            raise FileNotFoundError(errno.ENOENT, "a symbolic link", parts[-1])
        return found

    def stat_file(self, parts: Parts) -> os.stat_result:
        """The same for a regular file only."""
        found = self.stat(parts)
        _must_be_regular(found)
        return found

    def write(self, parts: Parts, content: bytes) -> None:
        """Put ``content`` in place of the file, in one step: readers see the old or the new one whole."""
        with self.locked(parts) as folder:
            self.put(folder, parts[-1], content)

    @contextmanager
    def locked(self, parts: Parts) -> Iterator[int]:
        """The folder of a file, as a descriptor, while no one else writes in it. Folders are made."""
        with self._folder(parts[:-1], make=True) as folder, lock(folder):
            yield folder

    def put(self, folder: int, name: str, content: bytes) -> None:
        """Write within ``locked``. Not synced: it survives the process, power loss may bring the old one."""
        temporary = f"{TEMPORARY_PREFIX}{os.getpid()}-{next(_numbers)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
        except FileExistsError:  # a dead process of the same number left it
            os.unlink(temporary, dir_fd=folder)
            descriptor = os.open(temporary, flags, 0o600, dir_fd=folder)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise

    def remove(self, parts: Parts) -> None:
        """Delete a file (a link itself, never what it points at)."""
        with self._folder(parts[:-1]) as folder:
            os.unlink(parts[-1], dir_fd=folder)

    def make_folder(self, parts: Parts) -> None:
        with self._folder(parts, make=True):
            pass

    def entries(self, parts: Parts) -> list[Entry]:
        """What is in a folder, by name; links and files being written are left out."""
        with self._folder(parts) as folder, os.scandir(folder) as found:
            entries = [
                Entry(entry.name, entry.is_dir(follow_symlinks=False))
                for entry in found
                if not entry.is_symlink() and not entry.name.startswith(TEMPORARY_PREFIX)
            ]
        return sorted(entries)

    @contextmanager
    def _folder(self, parts: Parts, *, make: bool = False) -> Iterator[int]:
        if make:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, 0o700, dir_fd=folder)
                below = os.open(part, _FOLDER, dir_fd=folder)
                os.close(folder)
                folder = below
            yield folder
        finally:
            os.close(folder)


def _must_be_regular(found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
