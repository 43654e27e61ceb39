"""Reads and writes in a folder that untrusted code can write: beneath it, and never through a link.

The daemon reads and writes in workspaces with this alone. A link in the tree, or one that appears during
a call, leads nowhere; pipes, devices and sockets are refused without waiting; sizes are bounded.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import functools
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple, ParamSpec, TypeVar

from agents.storage.atomic_write import lock
from agents.storage.paths import Parts
from agents.storage.safe_open import (
    TEMPORARY_PREFIX,
    UnsafeFileError,
    open_folder,
    open_made_folder,
    open_regular,
    open_root,
    read_regular_file,
    replace_file,
)
from agents.storage.safe_walk import MAX_BYTES, MAX_DEPTH, pass_over, walk

Where = str | os.PathLike[str] | Parts
"""A place beneath the root: its names, a relative path, or an absolute path that begins with the root."""
THREADS = 8
"""A disk that answers slowly holds up to so many calls, and no others."""

_P = ParamSpec("_P")
_T = TypeVar("_T")
_pool: ThreadPoolExecutor | None = None


class Entry(NamedTuple):
    name: str
    is_directory: bool


class SafeTree:
    """Files beneath ``root``, which is made when something is first written.

    All methods raise ``OSError``: ``FileNotFoundError``, ``UnsafeFileError`` for what is refused, others for
    a fault of the disk.

    ``also`` are further roots, for absolute paths that begin with them. Files are made for the owner only.
    """

    def __init__(self, root: str | os.PathLike[str], *also: Path) -> None:
        self.root = Path(root)
        self._roots = (self.root, *also)

    def read(self, where: Where, max_bytes: int | None = MAX_BYTES) -> bytes:
        """The content of a regular file of at most ``max_bytes``."""
        root, parts = self._named(where)
        with self._folder(root, ()) as folder:
            return read_regular_file(folder, parts, max_bytes)

    def read_if_there(self, where: Where, max_bytes: int | None = MAX_BYTES) -> bytes | None:
        """The same; None when nothing lies there."""
        try:
            return self.read(where, max_bytes)
        except FileNotFoundError:
            return None

    def open(self, where: Where) -> BinaryIO:
        """A regular file, opened for reading piece by piece."""
        root, parts = self._named(where)
        with self._folder(root, ()) as folder:
            return os.fdopen(open_regular(folder, parts)[0], "rb")

    def stat(self, where: Where) -> os.stat_result:
        """The status of the entry itself; a symbolic link is ``FileNotFoundError``."""
        found = self.lstat(where)
        if stat.S_ISLNK(found.st_mode):
            raise FileNotFoundError(errno.ENOENT, "a symbolic link", os.fspath(self.path(where)))
        return found

    def lstat(self, where: Where) -> os.stat_result:
        """The status of the entry itself, a link's too."""
        root, parts = self._located(where)
        if not parts:
            return root.stat()
        with self._folder(root, parts[:-1]) as folder:
            return os.stat(parts[-1], dir_fd=folder, follow_symlinks=False)

    def stat_file(self, where: Where) -> os.stat_result:
        """The status of a regular file only."""
        found = self.stat(where)
        if not stat.S_ISREG(found.st_mode):
            raise UnsafeFileError(f"{self.path(where).name} is not a regular file.")
        return found

    def is_file(self, where: Where) -> bool:
        """True for a regular file."""
        return self._is(where, stat.S_ISREG)

    def is_folder(self, where: Where) -> bool:
        """True for a folder."""
        return self._is(where, stat.S_ISDIR)

    def exists(self, where: Where) -> bool:
        """True when anything lies there, a link too."""
        return self._is(where, lambda _: True)

    def write(self, where: Where, content: bytes) -> None:
        """Put ``content`` in place of the file, in one step: readers see the old or the new one whole.

        For writers that take turns: the folder is locked. Not synced to the disk.
        """
        with self.locked(where) as folder:
            self.put(folder, self._located(where)[1][-1], content)

    def write_durably(self, where: Where, content: bytes, *, staging: Where | None = None) -> None:
        """The same without a lock, and synced: a crash leaves the old file or the new one, never half.

        ``staging`` is a folder of the same file system in which it is written first; else that is the
        file's own, where others who may write there can open it before it is whole.
        """
        root, parts = self._named(where)
        above, inner = (root, parts[:-1]) if staging is None else self._located(staging)
        with (
            self._folder(root, parts[:-1], make=True) as folder,
            self._folder(above, inner, make=True) as staged,
        ):
            replace_file(folder, parts[-1], content, durable=True, staged=staged)

    def write_unsynced(self, where: Where, content: bytes) -> None:
        """The same without waiting for the disk: power loss may bring the old file back, or an empty one."""
        root, parts = self._named(where)
        with self._folder(root, parts[:-1], make=True) as folder:
            replace_file(folder, parts[-1], content, durable=False)

    @contextmanager
    def locked(self, where: Where) -> Iterator[int]:
        """The folder of a file, as a descriptor, while no one else writes in it. Folders are made."""
        root, parts = self._located(where)
        with self._folder(root, parts[:-1], make=True) as folder, lock(folder):
            yield folder

    def put(self, folder: int, name: str, content: bytes) -> None:
        """Write within ``locked``. Not synced: it survives the process, power loss may bring the old one."""
        replace_file(folder, name, content, durable=False)

    def remove(self, where: Where, *, missing_ok: bool = False) -> None:
        """Delete a file (a link itself, never what it points at)."""
        root, parts = self._named(where)
        try:
            with self._folder(root, parts[:-1]) as folder:
                os.unlink(parts[-1], dir_fd=folder)
        except FileNotFoundError:
            if not missing_ok:
                raise

    def remove_tree(self, where: Where) -> None:
        """Delete a folder with what is in it, as far as that goes; a link itself is deleted."""
        root, parts = self._named(where)
        with suppress(FileNotFoundError), self._folder(root, parts[:-1]) as folder:
            if stat.S_ISDIR(os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode):
                shutil.rmtree(parts[-1], ignore_errors=True, dir_fd=folder)
            else:
                os.unlink(parts[-1], dir_fd=folder)

    def remove_empty_folders(self, where: Where) -> None:
        """Delete a folder and those in it, from the inside, unless something else lies there."""
        folders = [*self.folders(where), ""]
        root, parts = self._located(where)
        for inner in folders:
            names = (*parts, *(inner.split("/") if inner else ()))
            with suppress(OSError), self._folder(root, names[:-1]) as above:
                os.rmdir(names[-1], dir_fd=above)

    def rename(self, source: Where, target: Where) -> None:
        """Move a file or folder within the tree, synced; a file in its place is replaced. Folders are made."""
        (from_root, old), (to_root, new) = self._named(source), self._named(target)
        with self._folder(from_root, old[:-1]) as here, self._folder(to_root, new[:-1], make=True) as there:
            os.replace(old[-1], new[-1], src_dir_fd=here, dst_dir_fd=there)
            os.fsync(there)
            os.fsync(here)

    def make_folder(self, where: Where) -> None:
        """Make a folder and those above it; it may be there already."""
        with self._folder(*self._located(where), make=True):
            pass

    def entries(self, where: Where) -> list[Entry]:
        """The entries of a folder, by name; links and files being written are left out."""
        with self._folder(*self._located(where)) as folder, os.scandir(folder) as found:
            entries = [
                Entry(entry.name, entry.is_dir(follow_symlinks=False))
                for entry in found
                if not entry.is_symlink() and not entry.name.startswith(TEMPORARY_PREFIX)
            ]
        return sorted(entries)

    def modes(self, where: Where) -> list[tuple[str, int]]:
        """Name and mode of each entry of a folder, links too, sorted; none where there is no such folder."""
        found = []
        with (
            suppress(FileNotFoundError, UnsafeFileError),
            self._folder(*self._located(where)) as folder,
            os.scandir(folder) as entries,
        ):
            for entry in entries:
                with suppress(FileNotFoundError):  # it went away
                    found.append((entry.name, entry.stat(follow_symlinks=False).st_mode))
        return sorted(found)

    def names(self, where: Where) -> list[str]:
        """The names in a folder, sorted, without links; none where there is no such folder."""
        try:
            return [entry.name for entry in self.entries(where)]
        except (FileNotFoundError, UnsafeFileError):
            return []

    def files(
        self, where: Where, wants: Callable[[str], bool], enters: Callable[[str], bool]
    ) -> Iterator[tuple[str, os.stat_result]]:
        """(path beneath ``where``, status) of each regular file whose name is wanted, in no order.

        A folder that is missing, refused or unreadable holds no files.
        """
        try:
            with self._folder(*self._located(where)) as folder:
                found = walk(
                    folder,
                    enters=_by_name(enters),
                    wants=lambda path: wants(path.rpartition("/")[2]),
                    failed=pass_over,
                )
                yield from ((path, status) for path, status in found if stat.S_ISREG(status.st_mode))
        except OSError:
            return

    def folders(self, where: Where, enters: Callable[[str], bool] = lambda _: True) -> list[str]:
        """The paths of the folders beneath ``where`` that are entered, the inner before the outer ones."""
        try:
            with self._folder(*self._located(where)) as folder:
                found = walk(folder, enters=_by_name(enters), wants=lambda _: False, failed=pass_over)
                return sorted((path for path, _ in found), reverse=True)
        except OSError:
            return []

    def links(self, where: Where, enters: Callable[[str], bool] = lambda _: True) -> list[str]:
        """The paths of the symbolic links beneath ``where``, sorted; "" when it is one itself."""
        try:
            if stat.S_ISLNK(self.lstat(where).st_mode):
                return [""]
            with self._folder(*self._located(where)) as folder:
                found = walk(folder, enters=_by_name(enters), failed=pass_over)
                return sorted(path for path, status in found if stat.S_ISLNK(status.st_mode))
        except OSError:
            return []

    def link_target(self, where: Where) -> str:
        """The path that a link holds, as text."""
        root, parts = self._named(where)
        with self._folder(root, parts[:-1]) as folder:
            return os.readlink(parts[-1], dir_fd=folder)

    def path(self, where: Where) -> Path:
        """The path of a place, to be shown or handed to a worker; never to be opened by the daemon."""
        root, parts = self._located(where)
        return root.joinpath(*parts)

    def _is(self, where: Where, test: Callable[[int], bool]) -> bool:
        try:
            return test(self.lstat(where).st_mode)
        except OSError:
            return False

    def _located(self, where: Where) -> tuple[Path, Parts]:
        if isinstance(where, tuple):
            return self.root, where
        text = os.fspath(where)
        if not text.startswith("/"):
            return self.root, _parts(text)
        for root in self._roots:
            start = os.fspath(root)
            if text == start:
                return root, ()
            if text.startswith(start.rstrip("/") + "/"):
                return root, _parts(text[len(start.rstrip("/")) + 1 :])
        raise UnsafeFileError(
            f"{text} lies outside {self.root.name}; it was not opened.", do="Move it there."
        )

    def _named(self, where: Where) -> tuple[Path, Parts]:
        """The same, for what lies in a folder. Raises ``IsADirectoryError`` for a root itself."""
        root, parts = self._located(where)
        if not parts:
            raise IsADirectoryError(errno.EISDIR, "the folder itself")
        return root, parts

    @contextmanager
    def _folder(self, root: Path, parts: Parts, *, make: bool = False) -> Iterator[int]:
        if make:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder = open_root(root)
        try:
            if parts:
                inner = (open_made_folder if make else open_folder)(folder, parts)
                os.close(folder)
                folder = inner
            yield folder
        finally:
            os.close(folder)


def _by_name(enters: Callable[[str], bool]) -> Callable[[str], bool]:
    """``enters`` for paths, down to ``MAX_DEPTH``."""
    return lambda path: path.count("/") < MAX_DEPTH and enters(path.rpartition("/")[2])


def _parts(text: str) -> Parts:
    parts = tuple(text.split("/")) if text not in ("", ".") else ()
    if any(part in ("", ".", "..") for part in parts):
        raise UnsafeFileError(f"{text!r} is no path beneath a folder.", do="Name it without '..'.")
    return parts


async def in_file_pool(function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """The result of ``function``, called in a thread of the pool for workspace files."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(THREADS, thread_name_prefix="workspace-files")
    call = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_pool, call)
