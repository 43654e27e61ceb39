"""The log on the disk: for those who wait until it is there, beside the writer, many by one sync."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

from rappd.store.bell import Bell

ROOM = 1 << 20
_ZEROS = bytes(1 << 16)

Waiting = list[tuple[Any, Any]]
"""Who waits, and what he is told once it is on the disk."""


class Log:
    """The write-ahead log's file. It carries no locks, so it may be opened and closed beside SQLite's own."""

    def __init__(self, path: Path) -> None:
        self._path = Path(f"{path}-wal")
        self._descriptor = -1
        self._end = -1
        self._written = self._synced = 0

    def wrote(self) -> None:
        """Something was committed that stands nowhere else."""
        self._written += 1

    @property
    def is_behind(self) -> bool:
        """Whether the disk perhaps lacks any of that."""
        return self._synced < self._written

    def sync(self) -> None:
        """All that was committed is on the disk when this returns. Raises OSError. From any thread."""
        written = self._written
        if self._descriptor < 0:
            self._descriptor = os.open(self._path, os.O_RDWR)
            sync_folder(self._path.parent)  # else a power cut could take the file with its name
        to_disk(self._descriptor)
        self._synced = max(self._synced, written)

    def make_room(self) -> None:
        """Writes zeros ahead of what SQLite has used up: a sync of a file that does not grow takes half as
        long. (A frame of zeros is none, to SQLite.) Nothing before the first ``sync``. On the thread that writes
        to the log, for nobody else may write meanwhile. A full disk is for the next commit to notice.
        """
        if self._descriptor < 0:
            return
        with contextlib.suppress(OSError):
            if os.fstat(self._descriptor).st_size == self._end:
                return
            self._end = os.lseek(self._descriptor, 0, os.SEEK_END)
            for _ in range(ROOM // len(_ZEROS)):
                self._end += os.write(self._descriptor, _ZEROS)

    def close(self) -> None:
        """Gives the file back."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Syncable(Protocol):
    """A file that somebody may wait for."""

    def sync(self) -> None:
        """All that was written to it is on the disk when this returns. Raises OSError."""


class Syncer:
    """One thread that syncs while anybody waits; who comes meanwhile waits for the next time."""

    def __init__(self, deliver: Callable[[Waiting, OSError | None], None]) -> None:
        self._deliver = deliver
        self._bell = Bell()
        self._waiting: deque[tuple[Waiting, Sequence[Syncable]]] = deque()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="store-syncer", daemon=True)
        self._thread.start()

    def put(self, waiting: Waiting, files: Sequence[Syncable]) -> None:
        """These wait for all that was written to these files until now."""
        self._waiting.append((waiting, files))
        self._bell.ring()

    def close(self) -> None:
        """Blocks until nobody waits any more. Nothing may be put during or after it."""
        self._closing = True
        self._bell.ring()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing or self._waiting:
            self._bell.wait()
            while self._waiting:
                some = [self._waiting.popleft() for _ in range(len(self._waiting))]
                files = dict.fromkeys(file for _, each in some for file in each)
                self.sync([one for waiting, _ in some for one in waiting], list(files))

    def sync(self, waiting: Waiting, files: Sequence[Syncable]) -> None:
        """Now, on this thread."""
        try:
            for file in files:
                file.sync()
        except OSError as error:
            self._deliver(waiting, error)
        else:
            self._deliver(waiting, None)


def to_disk(descriptor: int) -> None:
    """The file's content, past every cache. Raises OSError."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync stops at the drive
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        getattr(os, "fdatasync", os.fsync)(descriptor)


def sync_folder(folder: Path) -> None:
    """The names in it. Raises OSError."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
