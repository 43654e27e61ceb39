"""Writes files that a reader, or a crash, sees whole or not at all; ``lock`` is for writers that read first.

A change that depends on what is there is made while its folder is locked, by one writer at a time, across
threads and processes.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BufferedRandom
from pathlib import Path

from agents.storage.safe_walk import LinkFreeFolder

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds to wait for another writer."""

_FEW = 32
"""Entries that are quicker synced one by one."""
_NO_LOCKS_HERE = frozenset({errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP})
_held = threading.local()


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


@contextmanager
def lock(folder: int) -> Iterator[None]:
    """Hold the folder open as ``folder``. Raises ``TimeoutError`` when another writer keeps it.

    The folder itself is locked, so nothing is left lying about and a killed process holds nothing.
    A thread that has the lock may take it again.
    """
    found = os.fstat(folder)
    key = (found.st_dev, found.st_ino)
    mine: set[tuple[int, int]] = _held.__dict__.setdefault("folders", set())
    if key in mine:
        yield
        return
    _take_lock(folder)
    mine.add(key)
    try:
        yield
    finally:
        mine.discard(key)
        fcntl.flock(folder, fcntl.LOCK_UN)


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


def _take_lock(folder: int) -> None:
    deadline = time.monotonic() + PATIENCE
    pause = 0.0002
    while True:
        try:
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another writer keeps the folder") from None
        except OSError as error:
            if error.errno not in _NO_LOCKS_HERE:
                raise
            log.warning("This file system has no locks; writing without: %s", error)
            return
        time.sleep(pause)
        pause = min(pause * 2, 0.01)
