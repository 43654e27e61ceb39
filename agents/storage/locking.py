"""One writer at a time in a folder, across threads and processes."""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

log = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds to wait for another writer."""

_NO_LOCKS_HERE = frozenset({errno.EBADF, errno.EINVAL, errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP})
_held = threading.local()


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
    _take(folder)
    mine.add(key)
    try:
        yield
    finally:
        mine.discard(key)
        fcntl.flock(folder, fcntl.LOCK_UN)


def _take(folder: int) -> None:
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
