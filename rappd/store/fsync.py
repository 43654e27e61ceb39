"""Syncs SQLite's write-ahead log to the disk, on a thread beside the writer; many waiters share one sync."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.storage.atomic_write import sync_folder

STEP_BYTES = 1 << 20
_ZEROS = bytes(1 << 16)

Waiting = list[tuple[Any, Any]]
"""Waiters, each with its result once the log is on the disk."""


class SqliteWalFile:
    """The write-ahead log's file. It carries no locks, so it may be opened and closed beside SQLite's own."""

    def __init__(self, path: Path) -> None:
        self._path = Path(f"{path}-wal")
        self._descriptor = -1
        self._end = -1

    def sync(self) -> None:
        """Syncs everything committed so far. Raises OSError. Thread-safe."""
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, os.O_RDWR)
            sync_folder(self._path.parent)  # else a power cut could take the file with its name
        to_disk(self._descriptor)

    def extend(self) -> None:
        """Writes zeros ahead of what SQLite has used up: a sync of a file that does not grow takes half as long.

        (A frame of zeros is none, to SQLite.) Nothing before the first ``sync``. On the thread that writes to
        the log, for nobody else may write meanwhile. A full disk is for the next commit to notice.
        """
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):
            if os.fstat(self._descriptor).st_size == self._end:
                return
            self._end = os.lseek(self._descriptor, 0, os.SEEK_END)
            for _ in range(STEP_BYTES // len(_ZEROS)):
                self._end += os.write(self._descriptor, _ZEROS)

    def close(self) -> None:
        """Closes the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class FsyncThread:
    """A thread that syncs while there are waiters; those who come during a sync share the next one."""

    def __init__(self, log: SqliteWalFile, deliver: Callable[[Waiting, OSError | None], None]) -> None:
        self._log = log
        self._deliver = deliver
        self._wakeup = ThreadWakeup()
        self._waiting: deque[Waiting] = deque()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="store-fsync", daemon=True)
        self._thread.start()

    def put(self, waiting: Waiting) -> None:
        """Queues waiters for a sync of everything committed so far."""
        self._waiting.append(waiting)
        self._wakeup.notify()

    def close(self) -> None:
        """Blocks until every waiter has its result. Nothing may be queued during or after it."""
        self._closing = True
        self._wakeup.notify()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing or self._waiting:
            self._wakeup.wait()
            while self._waiting:
                some = [self._waiting.popleft() for _ in range(len(self._waiting))]
                self.sync([one for waiting in some for one in waiting])

    def sync(self, waiting: Waiting) -> None:
        """Syncs on the calling thread."""
        try:
            self._log.sync()
        except OSError as error:
            self._deliver(waiting, error)
        else:
            self._deliver(waiting, None)


def to_disk(descriptor: int) -> None:
    """Syncs a file's content to the disk, past every cache. Raises OSError."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync stops at the drive
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        getattr(os, "fdatasync", os.fsync)(descriptor)


class ThreadWakeup:
    """One thread waits, any thread notifies. A notification while nobody waits ends the next wait at once.

    A bare lock, because it is notified for every turn: 0.1 µs while the waiter is running, against
    3 µs for a ``threading.Condition``.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def notify(self) -> None:
        """Ends the wait under way, or the next one."""
        if self._lock.locked():
            try:
                self._lock.release()
            except RuntimeError:  # another thread notified in between, which has the same effect
                return

    def wait(self, seconds: float | None = None) -> bool:
        """Sleeps until notified; False when ``seconds`` went by first."""
        return self._lock.acquire(timeout=-1 if seconds is None else seconds)
