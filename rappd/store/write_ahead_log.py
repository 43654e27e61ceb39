"""Syncs and checkpoints SQLite's write-ahead log, on threads beside the writer; many waiters share one sync.

Checkpoints are the tail of every commit's latency, so they run on a connection and thread of their own. Under load
such a checkpoint never catches up with the writer and the log would grow without end: past ``LONG_FRAMES`` the
writer is asked to start the log over itself, right after a checkpoint here has left it little to do.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agents.storage.atomic_write import sync_folder
from rappd.store.connections import BUSY_MS

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


log = logging.getLogger(__name__)

CHECKPOINT_PAGES = 4_000
LONG_FRAMES = 16_000  # 64 MB
SYNC_SECONDS = 1.0


class WalCheckpointer:
    """One thread: syncs within ``SYNC_SECONDS`` of a commit, checkpoints about every 16 MB written."""

    def __init__(self, path: Path) -> None:
        self._log = SqliteWalFile(path)
        self._wakeup = ThreadWakeup()
        self._pages = 0
        self._unsynced = False
        self._closing = False
        self.log_is_long = False
        self._db = sqlite3.connect(
            path, isolation_level=None, check_same_thread=False, timeout=BUSY_MS / 1000
        )
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._db.execute("PRAGMA fullfsync = ON")
        self._thread = threading.Thread(target=self._run, name="store-checkpointer", daemon=True)
        self._thread.start()

    def wrote(self, pages: int) -> None:
        """Notes a commit of about so many pages."""
        self._pages += pages
        if not self._unsynced or self._pages >= CHECKPOINT_PAGES:
            self._unsynced = True
            self._wakeup.notify()

    def close(self) -> None:
        """Ends the thread. SQLite checkpoints the log when the last connection closes."""
        self._closing = True
        self._wakeup.notify()
        self._thread.join()
        self._log.close()
        self._db.close()

    def _run(self) -> None:
        while not self._closing:
            self._wakeup.wait()
            deadline = time.monotonic() + SYNC_SECONDS
            while self._unsynced and not self._closing:
                # While the writer restarts the log, do not checkpoint beside it.
                if self._pages >= CHECKPOINT_PAGES and not self.log_is_long:
                    self._checkpoint()
                elif not self._wakeup.wait(max(0.0, deadline - time.monotonic())):
                    self._unsynced = False
                    self._sync_log()
                else:
                    continue
                deadline = time.monotonic() + SYNC_SECONDS

    def _checkpoint(self) -> None:
        self._pages = 0
        self._unsynced = False
        try:
            _, frames, _ = self._db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error as error:  # a full disk: the log keeps everything until there is room
            log.warning("checkpoint failed, will try again: %s", error)
            return
        if frames >= LONG_FRAMES:
            self.log_is_long = True

    def _sync_log(self) -> None:
        try:
            self._log.sync()
        except OSError as error:
            log.warning("the record could not be synced to the disk: %s", error)
