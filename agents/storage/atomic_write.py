"""Writes files that a reader, or a crash, sees whole or not at all."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path

from agents.storage.safe_walk import LinkFreeFolder

_FEW = 32
"""Entries that are quicker synced one by one."""


@contextmanager
def replacing(target: Path, *, mode: int = 0o600) -> Iterator[BufferedRandom]:
    """A new file beside ``target`` that takes its name, synced, when the block ends, and is gone if it fails.

    For places where no worker can write; in a workspace, ``SafeTree`` writes. Raises ``OSError``.
    """
    staged = target.with_name(f".{target.name}.{os.getpid()}.{os.urandom(4).hex()}.tmp")
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    handle = os.open(staged, flags, mode)
    try:
        with os.fdopen(handle, "w+b") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        staged.replace(target)
    except BaseException:
        staged.unlink(missing_ok=True)
        raise
    sync_folder(target.parent)


def write_atomically(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Writes ``content`` by ``replacing``; makes missing folders, 0700."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with replacing(path, mode=mode) as file:
        file.write(content)


def sync_folder(folder: Path) -> None:
    """Returns once the names in a folder are on the disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_tree(folder: Path, progress: Callable[[int, int], None] = lambda done, whole: None) -> None:
    """Returns once a folder and everything below it is on the disk. ``progress(done, whole)`` counts files."""
    with LinkFreeFolder(folder) as tree:
        found = list(tree.walk())
        progress(0, len(found))
        if len(found) > _FEW and _sync_disk(tree.folder("")):
            progress(len(found), len(found))
            return
        for number, (path, status) in enumerate(found, 1):
            if stat.S_ISDIR(status.st_mode):
                os.fsync(tree.folder(path))
            elif stat.S_ISREG(status.st_mode):  # a link or a pipe has nothing to be synced
                handle, _ = tree.open(path)
                try:
                    os.fsync(handle)
                finally:
                    os.close(handle)
            progress(number, len(found))
        os.fsync(tree.folder(""))


def _sync_disk(handle: int) -> bool:
    """One call for many files, where the system has it (Linux)."""
    if not sys.platform.startswith("linux"):
        return False
    import ctypes  # few who write files need it

    call = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if call is None:
        return False
    if call(handle) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return True
