"""The writer thread: batches entries, commits each batch as one transaction and resolves its waiters."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sqlite3
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rappd.errors import StoreError
from rappd.store import connections
from rappd.store.records import Event, Record, ThreadInfo
from rappd.store.transactions import CommitResult, Entry, Resolutions, TransactionWriter, Waiter
from rappd.store.write_ahead_log import FsyncThread, SqliteWalFile, ThreadWakeup, WalCheckpointer
from rappd.store.write_operations import Item, bytes_of, threads_of

log = logging.getLogger(__name__)

LINGER_SECONDS = 0.02
BATCH_ENTRIES = 1_000
BATCH_BYTES = 8 << 20
LOST_THREADS = 10_000
LOST_SECONDS = 60.0
"""So long the loss of a queued record fails ``flush``, whatever thread it was on; later it concerns that thread alone."""
ROOM_BYTES = 4 << 20
"""Free bytes from which on a disk that was full counts as having room."""


class Writer:
    """Commits entries in the order of ``put``. Results return to the event loop, one callback per batch.

    A batch that fails is rolled back, and everyone who waits for one of its entries gets the ``StoreError``. A lost
    record that nobody waited for makes the next wait on its thread fail, so that no acknowledgement covers a gap.
    """

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        self._path = path
        self._strict = strict
        self._pending: deque[Entry] = deque()
        self._wakeup = ThreadWakeup()
        self._lingering: asyncio.TimerHandle | None = None
        self._woken = False  # since the timer was set
        self.group_commit = GroupCommitPolicy(self._wakeup.notify)
        self.trouble: StoreError | None = None
        """The error of the last commit, None after one that succeeded. Thread-safe."""
        self._full = False
        self._closed = False
        self._lost: OrderedDict[str, StoreError] = OrderedDict()
        self._lost_at = 0.0
        self._completions = CompletionQueue(self.group_commit)
        self.followers = Followers()
        self._transactions = TransactionWriter(path, self.followers)
        try:
            self._checkpointer = WalCheckpointer(path)
        except BaseException:
            self._transactions.db.close()
            raise
        self._log = SqliteWalFile(path)
        self._fsync_thread = FsyncThread(self._log, self._synced)
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def put(self, item: Item | None, waiter: Waiter | None = None, *, strict: bool = False) -> None:
        """Queues an entry.

        With a waiter it is committed at once (under load: as ``group_commit`` decides), and so is a record that
        somebody follows; all else within ``LINGER_SECONDS``.

        The waiter gets the highest ``seq`` so far, or the result of ``execute``. ``strict`` syncs the entry and
        all before it to the disk first.
        """
        if self._closed:
            raise StoreError("The record is closed.", do="`rappd start` opens it.")
        self._pending.append((item, waiter, strict))
        if waiter is not None:
            self._woken = True
        elif self.followers.threads and isinstance(item, Record) and item.thread in self.followers:
            self._woken = True
            self._wakeup.notify()
        elif self._lingering is None:
            self._linger()
        self.group_commit.add_waiter(waits=waiter is not None)

    @property
    def last_seq(self) -> int | None:
        """The highest committed ``seq``; None before the first commit."""
        return self._transactions.known_seq

    def has_room_again(self) -> bool:
        """Ends the trouble of a disk that was full and has room now."""
        if self._full and shutil.disk_usage(self._path.parent).free >= ROOM_BYTES:
            self.trouble = None
        return self.trouble is None

    def stop_accepting(self) -> None:
        """Ends ``put``. Called on the event loop, so that nothing is queued behind the last entry."""
        self._closed = True
        self._wakeup.notify()

    def finish(self) -> None:
        """Waits until everything is written after ``stop_accepting``, then closes the files. Blocks."""
        self._thread.join()
        self._fsync_thread.close()
        self._log.close()
        self._checkpointer.close()
        self._transactions.db.close()

    def _linger(self) -> None:
        self._woken = False
        self._lingering = asyncio.get_running_loop().call_later(LINGER_SECONDS / 2, self._lingered)

    def _lingered(self) -> None:
        self._lingering = None
        if not self._pending:
            return
        if self._woken:  # everything before that is being written, and the rest is younger
            self._linger()
        else:
            self._wakeup.notify()

    # From here on: the writer's own thread.

    def _run(self) -> None:
        while not self._closed or self._pending:
            self._wakeup.wait()
            due = len(self._pending)  # later entries wake it again
            while due > 0:
                batch = self._next_batch()
                due -= len(batch)
                self._write(batch)
                if self._checkpointer.log_is_long:
                    self._restart_log()

    def _next_batch(self) -> list[Entry]:
        batch: list[Entry] = []
        size = 0
        pending = self._pending
        while pending and len(batch) < BATCH_ENTRIES and size < BATCH_BYTES:
            entry = pending.popleft()
            batch.append(entry)
            item = entry[0]
            if isinstance(item, Record):
                size += len(item.body)
            elif item is not None and not isinstance(item, ThreadInfo):
                size += bytes_of(item)
        return batch

    def _write(self, batch: list[Entry], *, one_by_one: bool = True) -> None:
        if self._lost:
            batch = self._without_lost_predecessors(batch)
        try:
            written = self._transactions.write(batch, strict=self._strict)
        except Exception as error:
            # Every later answer depends on this thread: it outlives whatever one batch does to it.
            self._transactions.rollback()
            if one_by_one and not isinstance(error, sqlite3.OperationalError):
                # One entry spoils only itself. (Or another process wrote: the heads are fresh now.)
                for entry in batch:
                    self._write([entry], one_by_one=False)
                return
            log.error(
                "%d entries were not written: %s",
                len(batch),
                error,
                exc_info=not isinstance(error, sqlite3.Error),
            )
            explained = connections.explain(error, self._path)
            if isinstance(error, sqlite3.DatabaseError | OSError):
                self._full = connections.is_full(error)
                self.trouble = explained
            self._fail(batch, explained)
        else:
            if self.trouble is not None and any(isinstance(item, Record) for item, _, _ in batch):
                self.trouble = None
            self._committed(written)

    def _committed(self, written: CommitResult) -> None:
        if written.pages:
            self._checkpointer.wrote(written.pages)
        self._completions.post(written.done)
        if written.followed:
            self.followers.post(written.followed)
        if written.to_sync:
            if self._pending or len(written.to_sync) > 1:  # a sync takes longer than the next commit
                self._fsync_thread.put(written.to_sync)
            else:
                self._fsync_thread.sync(written.to_sync)
            self._log.extend()

    def _fail(self, batch: list[Entry], error: StoreError) -> None:
        failed: Resolutions = []
        for item, waiter, _ in batch:
            if waiter is not None:
                failed.append((waiter, error))
            for thread in threads_of(item):
                if waiter is None:
                    self._lost[thread], self._lost_at = error, time.monotonic()
                    if len(self._lost) > LOST_THREADS:
                        self._lost.popitem(last=False)
                else:
                    self._lost.pop(thread, None)
        self._completions.post(failed)

    def _without_lost_predecessors(self, batch: list[Entry]) -> list[Entry]:
        """Returns the batch without records whose predecessors are lost; the next waiter on their thread gets the error."""
        kept: list[Entry] = []
        failed: Resolutions = []
        lately = time.monotonic() - self._lost_at < LOST_SECONDS
        for entry in batch:
            item, waiter, waits_for_disk = entry
            lost = [thread for thread in threads_of(item) if thread in self._lost]
            if item is None and waiter is not None and self._lost and lately and not waits_for_disk:
                failed.append((waiter, next(reversed(self._lost.values()))))
            elif not lost:
                kept.append(entry)
            elif waiter is not None:
                failed.append((waiter, self._lost[lost[0]]))
                for thread in lost:
                    self._lost.pop(thread, None)
        self._completions.post(failed)
        return kept

    def _restart_log(self) -> None:
        """Restarts the log at its beginning; stalls for milliseconds, rarely. A reader that needs the old log postpones it."""
        try:
            self._transactions.db.execute("PRAGMA busy_timeout = 0")
            self._transactions.db.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
            self._transactions.db.execute(f"PRAGMA busy_timeout = {connections.BUSY_MS}")
        except sqlite3.Error as error:
            log.warning("the log could not be started over, will try again: %s", error)
        self._checkpointer.log_is_long = False

    def _synced(self, results: Resolutions, error: OSError | None) -> None:
        if error is not None:
            log.error("the record could not be synced to the disk: %s", error)
            failure = connections.explain(error, self._path)
            results = [(waiter, failure) for waiter, _ in results]
        self._completions.post(results)


MANY = 4
"""Waiters resolved by one commit from which on load counts as high."""
ENOUGH = 32
"""Waiters for whom the writer is woken at the latest: more in one commit save nothing."""
LOOK_SECONDS = 0.001
LOOKS = 4


class NoWriter:
    """Takes the place of a ``Writer`` where a file is only read: every entry is refused with ``StoreError``."""

    trouble: StoreError | None = None
    last_seq: int | None = None

    def __init__(self) -> None:
        self.group_commit = GroupCommitPolicy(lambda: None)
        self.followers = Followers()

    def put(self, item: Item | None, waiter: Waiter | None = None, *, strict: bool = False) -> None:
        """Refuses the entry. A flush, which brings none, is done."""
        if item is not None:
            raise StoreError("Nothing can be written down: this home is only read.", do="rappd start")
        if waiter is not None:
            waiter.set_result(0)

    def has_room_again(self) -> bool:
        """Returns False: nothing is written, whatever room there is."""
        return False

    def stop_accepting(self) -> None:
        """Does nothing."""

    def finish(self) -> None:
        """Does nothing."""


class GroupCommitPolicy:
    """Batches waiters under load: a commit costs the same for one turn and for ten, and wakes two threads.

    Under load the writer sleeps until every active turn waits or ``ENOUGH`` do, until nothing was put for
    ``LOOK_SECONDS``, or until ``LOOKS`` such intervals passed. For the event loop only.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._turns = _ActiveTurns()
        self._notify = notify
        self._waiting = 0
        self._recent_most = 0  # the most waiters that one commit resolved lately
        self._timer: asyncio.TimerHandle | None = None
        self._looks = 0
        self._put = self._seen = 0

    def active(self) -> _ActiveTurns:
        """A context manager around a turn that will wait for a commit at least once."""
        return self._turns

    def add_waiter(self, *, waits: bool) -> None:
        """Counts an entry, and wakes the writer now or later for one with a waiter."""
        self._put += 1
        if not waits:
            return
        self._waiting += 1
        if self.is_low_load or self._waiting >= min(ENOUGH, self._turns.active_requests):
            self._wake_now()
        elif self._timer is None:
            self._looks = LOOKS
            self._look_later()

    @property
    def is_low_load(self) -> bool:
        """True while few wait: then each commit may be made at once."""
        return self._recent_most < MANY

    def resolved(self, count: int) -> None:
        """Counts the waiters that one commit resolved."""
        self._waiting -= count
        self._recent_most = max(count, self._recent_most - 1)

    def _look_later(self) -> None:
        self._seen = self._put
        self._timer = asyncio.get_running_loop().call_later(LOOK_SECONDS, self._look)

    def _look(self) -> None:
        self._looks -= 1
        if self._looks and self._put != self._seen:
            self._look_later()
        else:
            self._timer = None
            self._notify()

    def _wake_now(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._notify()


class _ActiveTurns:
    """Counts active turns.

    (A ``contextlib`` context manager takes ten times as long.)
    """

    def __init__(self) -> None:
        self.active_requests = 0

    def __enter__(self) -> None:
        self.active_requests += 1

    def __exit__(self, *_: object) -> None:
        self.active_requests -= 1


class CompletionQueue:
    """Used by one writer, for the futures of one event loop."""

    def __init__(self, group_commit: GroupCommitPolicy) -> None:
        self._group_commit = group_commit
        self._pending: deque[tuple[Waiter, Any]] = deque()

    def post(self, results: Resolutions) -> None:
        """Resolves these futures soon. Thread-safe."""
        if results:
            try:
                results[0][0].get_loop().call_soon_threadsafe(self._settle, results)
            except RuntimeError:  # the loop is closed: nobody waits any more
                return

    def _settle(self, results: Resolutions) -> None:
        self._pending += results
        if len(self._pending) == len(results):
            self._resolve()

    def _resolve(self) -> None:
        """Resolves ``ENOUGH`` per iteration of the loop: their next steps begin before the others are resolved."""
        count = min(ENOUGH, len(self._pending))
        self._group_commit.resolved(count)
        for _ in range(count):
            waiter, result = self._pending.popleft()
            if waiter.done():  # cancelled meanwhile
                continue
            if isinstance(result, StoreError):
                waiter.set_exception(result)
            else:
                waiter.set_result(result)
        if self._pending:
            asyncio.get_running_loop().call_soon(self._resolve)


Follower = Callable[[list[Event]], None]


class Followers:
    """Threads that somebody follows, each with the event loop that its events go to."""

    def __init__(self) -> None:
        self.threads: dict[str, tuple[asyncio.AbstractEventLoop, Follower]] = {}

    def __contains__(self, thread: object) -> bool:
        """True for a thread that is followed. Thread-safe."""
        return thread in self.threads

    def add(self, thread: str, follower: Follower) -> None:
        """Lets ``follower`` follow a thread, in place of any before."""
        self.threads[thread] = asyncio.get_running_loop(), follower

    def post(self, events: list[Event]) -> None:
        """Gives each follower its events soon. Thread-safe."""
        by_thread: dict[str, list[Event]] = {}
        for event in events:
            by_thread.setdefault(event.thread, []).append(event)
        for thread, found in by_thread.items():
            loop, follower = self.threads[thread]
            try:
                loop.call_soon_threadsafe(follower, found)
            except RuntimeError:  # the loop is closed: nobody listens any more
                return
