"""Syncs the write-ahead log and checkpoints it, on a thread beside the writer.

Checkpoints are the tail of every commit's latency, so they run here, on a connection and thread of
their own. Under load such a checkpoint never catches up with the writer and the log would grow
without end: past ``LONG_FRAMES`` the writer is asked to start the log over itself, right after a
checkpoint here has left it little to do.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from pathlib import Path

from rappd.store.connections import BUSY_MS
from rappd.store.fsync import SqliteWalFile, ThreadWakeup

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
