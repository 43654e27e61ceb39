"""The one writer: a thread that commits whatever has gathered since its last commit, as one transaction.

What few wait for the event loop appends to the intake itself.
"""

from __future__ import annotations

import asyncio
import logging
import sqlite3
import threading
import time
from collections import OrderedDict, deque
from contextlib import ExitStack
from pathlib import Path

from rappd.errors import StoreError
from rappd.store import connections
from rappd.store.backlog import Backlog
from rappd.store.bell import Bell
from rappd.store.carrying import Carrying
from rappd.store.changes import Item, Taking, bytes_of, threads_of
from rappd.store.gathering import Gathering
from rappd.store.intake import Intake
from rappd.store.keeper import Keeper
from rappd.store.kernel_sync import KernelSync
from rappd.store.records import Record, ThreadInfo
from rappd.store.seen import Seen
from rappd.store.syncing import Log, Syncable, Syncer
from rappd.store.tables import Done, Entry, Tables, Waiter, Written
from rappd.store.telling import Telling

log = logging.getLogger(__name__)

LINGER_SECONDS = 0.02
BATCH_ENTRIES = 1_000
BATCH_BYTES = 8 << 20
LOST_THREADS = 10_000
SLOW_SECONDS, SLOW_FOR_SECONDS = 0.02, 10.0
"""The loop appends nothing itself for so long after that took it longer than a disk that is not overloaded takes."""


class Writer:
    """Entries go in from the event loop by ``put``; results come back to it, one call per batch.

    What appends to threads goes into the intake, and from there into the tables soon after. All else is
    a batch for the tables. One that fails is rolled back, and all who wait for it get the ``StoreError``. A lost
    record that nobody waited for makes the next wait on its thread fail as well, so that no acknowledgement ever
    covers a gap.
    """

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        self._path = path
        self._strict = strict
        self._pending: deque[Entry] = deque()
        self._bell = Bell()
        self._lingering: asyncio.TimerHandle | None = None
        self._rang = False  # since the timer was set
        self.gathering = Gathering(self._bell.ring)
        self._closed = False
        self._lost: OrderedDict[str, StoreError] = OrderedDict()
        self._telling = Telling(self.gathering)
        self._wanting: deque[Waiter] = deque()
        self._log = Log(path)
        self._tables = Tables(path)
        with ExitStack() as opened:
            opened.callback(self._tables.db.close)
            self._keeper = Keeper(path)
            opened.callback(self._keeper.close)
            self._backlog = Backlog(path, self._tables, self._log)
            opened.callback(self._backlog.close)
            self._carrying = Carrying(path, self._tables, self._backlog, self._keeper, self._fail)
            self._carrying.catch_up()
            self._backlog.begin()
            opened.pop_all()
        self._at_work = threading.Lock()  # who has it has the backlog and the tables
        self._patience: float | None = None  # how long the thread sleeps
        self._appended = False  # in this round of the loop
        self._too_slow_until = 0.0
        self._seen = Seen(path)
        self._kernel = KernelSync(self._synced_by_kernel)
        self._syncer = Syncer(self._synced)
        self._thread = threading.Thread(target=self._run, name="store-writer", daemon=True)
        self._thread.start()

    def put(self, item: Item | None, waiter: Waiter | None = None, *, strict: bool = False) -> None:
        """Takes an entry, in order: written at once with a waiter, else within ``LINGER_SECONDS``.
        Where many wait, at once is as ``gathering`` says.

        The waiter gets the highest ``seq`` so far, or what ``carry_out`` finds. ``strict`` syncs it,
        and all before it, to the disk.
        """
        if self._closed:
            raise StoreError("The record is closed.", do="`rappd start` opens it.")
        entry = (item, waiter, strict)
        if waiter is None or not self.gathering.quiet or not self._append(entry):
            self._pending.append(entry)
            if waiter is not None:
                self._rang = True
            elif self._lingering is None:
                self._linger()
            self.gathering.put(waits=waiter is not None)
        if isinstance(item, Taking):
            self._seen.add(item.sender, item.id)
        elif isinstance(item, Record) and item.answers:
            self._seen.add(item.recipient, item.id)

    def hasten(self) -> None:
        """What was put without a waiter is written after the next round of the loop, in which what follows from
        it may be sent: so that whoever will wait for what comes of it waits for less. Not while many wait."""
        if self.gathering.quiet:
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._hastened)

    @property
    def is_behind(self) -> bool:
        """Whether the tables lack anything that was acknowledged."""
        return self._backlog.is_behind

    @property
    def last_seq(self) -> int | None:
        """The highest ``seq`` in the tables; None where that takes a look into the file."""
        return self._tables.known_seq

    def may_hold(self, caller: str, id: str) -> bool:
        """Whether the tables perhaps lack the answer to a turn that was acknowledged."""
        return self._backlog.may_hold(caller, id)

    def catch_up(self, waiter: Waiter) -> None:
        """The waiter gets True once the tables have all that was acknowledged until now, or a ``StoreError``."""
        self._wanting.append(waiter)
        self._bell.ring()

    def stop_taking(self) -> None:
        """Ends ``put``; called on the loop, so that nothing slips in behind the last entry."""
        self._closed = True
        self._bell.ring()

    async def synced(self) -> None:
        """After ``stop_taking``, on the loop: nothing that began there is under way any more."""
        await self._kernel.finish()

    def finish(self) -> None:
        """After ``stop_taking``: waits until all is written, then closes the files. Blocks."""
        self._thread.join()
        self._seen.close()
        self._syncer.close()
        self._backlog.close()
        self._log.close()
        self._keeper.close()
        self._tables.db.close()

    def part(self) -> None:
        """After ``finish``, on the loop: whoever waited was told."""
        self._telling.close()

    def _linger(self) -> None:
        self._rang = False
        self._lingering = asyncio.get_running_loop().call_later(LINGER_SECONDS / 2, self._lingered)

    def _lingered(self) -> None:
        self._lingering = None
        if not self._pending:
            return
        if self._rang:  # what came before that is being written, and the rest is younger
            self._linger()
        else:
            self._bell.ring()

    def _hastened(self) -> None:
        if self._pending and not self._append():
            self._rang = True
            self._bell.ring()

    def _append(self, *entry: Entry) -> bool:
        """All that is pending, and what is put now, into the intake here and now: to wake the thread for that takes
        longer, where few wait and it has nothing to do. False, and nothing done, for whatever could hold up the loop,
        and for the second in one round of it: several at once are for the thread."""
        batch = [*self._pending, *entry]
        is_for_disk_only = len(batch) == 1 and batch[0][0] is None
        began = time.monotonic()
        if (
            self._closed
            or (self._appended and not is_for_disk_only)
            or self._kernel.is_busy  # a file system may let nobody write what is on its way to the disk
            or began < self._too_slow_until
            or not self._at_work.acquire(blocking=False)
        ):
            return False
        try:
            if self._lost or not self._telling.is_idle:
                return False
            taken = self._backlog.take(batch, strict=self._strict, seen=self._seen)
            if time.monotonic() - began > SLOW_SECONDS:
                self._too_slow_until = began + SLOW_FOR_SECONDS
            if taken is None:
                return False
            self._pending.clear()
            if self._patience is None or self._backlog.is_due:
                self._bell.ring()  # the loop may be held up by others, and what is behind is to be carried
        finally:
            self._at_work.release()
        if not self._appended:
            self._appended = True
            asyncio.get_running_loop().call_soon(self._next_round)
        if entry:
            self.gathering.joins()
        done, to_sync = taken
        if done:
            self._telling.tell(done)
        if to_sync:
            self._sync_soon(to_sync)
        return True

    def _next_round(self) -> None:
        self._appended = False

    def _sync_soon(self, results: Done) -> None:
        intake = self._backlog.intake
        assert intake is not None
        descriptor = None if self._log.is_behind else intake.synced_by_descriptor
        if descriptor is None or not self._kernel.put(results, descriptor):
            self._syncer.put(results, self._behind(intake))

    # From here on: the writer's own thread.

    def _run(self) -> None:
        while not self._closed or self._pending:
            self._bell.wait(self._patience)
            with self._at_work:
                self._work()
                self._patience = self._backlog.patience
        with self._at_work:
            self._catch_up_for_all()

    def _work(self) -> None:
        due = len(self._pending)  # who comes later rings again
        while due > 0:
            batch = self._gather()
            due -= len(batch)
            self._take(batch)
            if self._keeper.log_is_long:
                self._start_log_over()
        if self._wanting or self._backlog.is_due:
            self._catch_up_for_all()

    def _gather(self) -> list[Entry]:
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

    def _take(self, batch: list[Entry]) -> None:
        if self._lost:
            batch = self._without_cut_off(batch)
        if not batch:
            return
        taken = self._backlog.take(batch, strict=self._strict)
        if taken is not None:
            done, to_sync = taken
            self._telling.deliver(done)
            if to_sync:
                assert self._backlog.intake is not None
                self._sync(to_sync, self._behind(self._backlog.intake))
            return
        try:
            written = self._carrying.with_it(batch, strict=self._strict) if self._backlog.is_behind else None
            self._carrying.catch_up()
        except StoreError as error:
            self._fail(batch, error)
        else:
            if written is not None:
                self._written(written)
            else:
                self._attempt(batch)

    def _catch_up_for_all(self) -> None:
        waiting = [self._wanting.popleft() for _ in range(len(self._wanting))]
        try:
            self._carrying.catch_up()
        except StoreError as error:
            self._telling.deliver([(waiter, error) for waiter in waiting])
        else:
            self._telling.deliver([(waiter, True) for waiter in waiting])

    def _attempt(self, batch: list[Entry], *, one_by_one: bool = True) -> None:
        if self._lost:
            batch = self._without_cut_off(batch)
        try:
            written = self._tables.write(batch, strict=self._strict)
        except Exception as error:
            # Every later answer depends on this thread: it outlives whatever one batch does to it.
            self._tables.take_back()
            if one_by_one and not isinstance(error, sqlite3.OperationalError):
                # One entry spoils only itself. (Or another process wrote: the heads are fresh now.)
                for entry in batch:
                    self._attempt([entry], one_by_one=False)
                return
            log.error(
                "%d entries were not written: %s",
                len(batch),
                error,
                exc_info=not isinstance(error, sqlite3.Error),
            )
            self._fail(batch, connections.explain(error, self._path))
        else:
            self._written(written)

    def _written(self, written: Written) -> None:
        if written.pages:
            self._log.wrote()
            self._keeper.wrote(written.pages)
        self._telling.deliver(written.done)
        if written.to_sync:
            self._sync(written.to_sync, (self._log,))
            self._log.make_room()

    def _behind(self, intake: Intake) -> tuple[Syncable, ...]:
        return (self._log, intake) if self._log.is_behind else (intake,)

    def _sync(self, results: Done, files: tuple[Syncable, ...]) -> None:
        if self._pending or len(results) > 1:  # a sync takes longer than what waits here
            self._syncer.put(results, files)
        else:
            self._syncer.sync(results, files)

    def _fail(self, batch: list[Entry], error: StoreError) -> None:
        failed: Done = []
        for item, waiter, _ in batch:
            if waiter is not None:
                failed.append((waiter, error))
            for thread in threads_of(item):
                if waiter is None:
                    self._lost[thread] = error
                    if len(self._lost) > LOST_THREADS:
                        self._lost.popitem(last=False)
                else:
                    self._lost.pop(thread, None)
        self._telling.deliver(failed)

    def _without_cut_off(self, batch: list[Entry]) -> list[Entry]:
        """The batch without the records whose predecessors are lost; the next who waits for them is told."""
        kept: list[Entry] = []
        failed: Done = []
        for entry in batch:
            item, waiter, waits_for_disk = entry
            lost = [thread for thread in threads_of(item) if thread in self._lost]
            if item is None and waiter is not None and self._lost and not waits_for_disk:
                failed.append((waiter, next(reversed(self._lost.values()))))
            elif not lost:
                kept.append(entry)
            elif waiter is not None:
                failed.append((waiter, self._lost[lost[0]]))
                for thread in lost:
                    self._lost.pop(thread, None)
        self._telling.deliver(failed)
        return kept

    def _start_log_over(self) -> None:
        """Stalls for milliseconds, rarely. A reader that needs the old log makes it wait for another time."""
        try:
            self._tables.db.execute("PRAGMA busy_timeout = 0")
            self._tables.db.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
            self._tables.db.execute(f"PRAGMA busy_timeout = {connections.BUSY_MS}")
        except sqlite3.Error as error:
            log.warning("the log could not be started over, will try again: %s", error)
        self._keeper.log_is_long = False

    def _synced(self, results: Done, error: OSError | None) -> None:
        self._telling.deliver(self._after_sync(results, error))

    def _synced_by_kernel(self, results: Done, error: OSError | None) -> None:
        self._telling.tell(self._after_sync(results, error))

    def _after_sync(self, results: Done, error: OSError | None) -> Done:
        if error is None:
            return results
        log.error("the record could not be synced to the disk: %s", error)
        told = connections.explain(error, self._path)
        return [(waiter, told) for waiter, _ in results]
