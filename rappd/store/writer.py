"""The one writer: a thread that commits whatever has gathered since its last commit, as one transaction."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import threading
from collections import OrderedDict, deque
from pathlib import Path
from typing import Any

from envelopes.chain import link
from rappd.errors import StoreError
from rappd.store import connections
from rappd.store.bell import Bell
from rappd.store.changes import Change, Item, Other, Reply, bytes_of, carry_out, threads_of
from rappd.store.gathering import ENOUGH, Gathering
from rappd.store.heads import Head, Heads
from rappd.store.keeper import Keeper
from rappd.store.records import Record, ThreadInfo
from rappd.store.syncing import Log, Syncer
from rappd.store.together import Together

log = logging.getLogger(__name__)

LINGER_SECONDS = 0.02
BATCH_ENTRIES = 1_000
BATCH_BYTES = 8 << 20
LOST_THREADS = 10_000

Waiter = asyncio.Future[Any]
_PLAIN = (Record, ThreadInfo, type(None))
_Entry = tuple[Item | None, Waiter | None, bool]
_Done = list[tuple[Waiter, Any]]
"""Who is told what."""

_PAGE_BYTES = 4096
_ROW_BYTES = 250  # beside the body
_ENDS = 2  # of events and their index: a page of each
_NEIGHBOURS = 64  # threads that began after one another, whose rows share pages
_INSERT = Together("INSERT INTO events VALUES", 12)


class Writer:
    """Entries go in from the event loop by ``put``; results come back to it, one call per batch.

    Heads in memory run ahead of COMMIT. A batch that fails is rolled back, the heads are forgotten,
    and all who wait for it get the ``StoreError``. A lost record that nobody waited for makes the
    next wait on its thread fail as well, so that no acknowledgement ever covers a gap.
    """

    def __init__(self, path: Path, *, strict: bool = False) -> None:
        self._path = path
        self._strict = strict
        self._pending: deque[_Entry] = deque()
        self._bell = Bell()
        self._lingering: asyncio.TimerHandle | None = None
        self._rang = False  # since the timer was set
        self.gathering = Gathering(self._bell.ring)
        self._closed = False
        self._lost: OrderedDict[str, StoreError] = OrderedDict()
        self._seq: int | None = None
        self._mixed = False
        self._untold: deque[tuple[Waiter, Any]] = deque()
        self._db = connections.open_writing(path)
        self._heads = Heads(self._db)
        try:
            self._keeper = Keeper(path)
        except BaseException:
            self._db.close()
            raise
        self._log = Log(path)
        self._syncer = Syncer(self._log, self._synced)
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
        self._pending.append((item, waiter, strict))
        if waiter is not None:
            self._rang = True
        elif self._lingering is None:
            self._linger()
        self.gathering.put(waits=waiter is not None)

    def hasten(self) -> None:
        """What was put without a waiter is written after the next round of the loop, in which what follows from
        it may be sent: so that whoever will wait for what comes of it waits for less. Not while many wait."""
        if self.gathering.quiet:
            loop = asyncio.get_running_loop()
            loop.call_soon(loop.call_soon, self._hastened)

    def stop_taking(self) -> None:
        """Ends ``put``; called on the loop, so that nothing slips in behind the last entry."""
        self._closed = True
        self._bell.ring()

    def finish(self) -> None:
        """After ``stop_taking``: waits until all is written, then closes the files. Blocks."""
        self._thread.join()
        self._syncer.close()
        self._log.close()
        self._keeper.close()
        self._db.close()

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
        if self._pending:
            self._rang = True
            self._bell.ring()

    # From here on: the writer's own thread.

    def _run(self) -> None:
        while not self._closed or self._pending:
            self._bell.wait()
            due = len(self._pending)  # who comes later rings again
            while due > 0:
                batch = self._gather()
                due -= len(batch)
                self._attempt(batch)
                if self._keeper.log_is_long:
                    self._start_log_over()

    def _gather(self) -> list[_Entry]:
        batch: list[_Entry] = []
        size = 0
        pending = self._pending
        self._mixed = False
        while pending and len(batch) < BATCH_ENTRIES and size < BATCH_BYTES:
            entry = pending.popleft()
            batch.append(entry)
            item = entry[0]
            if isinstance(item, Record):
                size += len(item.body)
            elif item is not None and not isinstance(item, ThreadInfo):
                self._mixed = True
                size += bytes_of(item)
        return batch

    def _attempt(self, batch: list[_Entry], *, one_by_one: bool = True) -> None:
        if self._lost:
            batch = self._without_cut_off(batch)
        try:
            done, to_sync = self._write(batch)
        except Exception as error:
            # Every later answer depends on this thread: it outlives whatever one batch does to it.
            self._take_back()
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
            self._deliver(done)
            if to_sync:
                if self._pending or len(to_sync) > 1:  # a sync takes longer than what waits here
                    self._syncer.put(to_sync)
                else:
                    self._syncer.sync(to_sync)
                self._log.make_room()

    def _write(self, batch: list[_Entry]) -> tuple[_Done, _Done]:
        """Who can be told now, and who once it is on the disk."""
        if self._seq is None:
            self._seq = self._db.execute("SELECT max(seq) FROM events").fetchone()[0] or 0
        seq = self._seq
        size = answers = 0
        rows: list[tuple[object, ...]] = []
        touched: dict[int, Head] = {}
        done: _Done = []
        to_sync: _Done = []
        entries = self._unfolded(batch, done, to_sync) if self._mixed else batch
        self._heads.look_up(_threads(entries))
        for item, waiter, strict in entries:
            if isinstance(item, Record):
                head = self._heads.find(item.thread) or self._heads.begin(_bare(item))
                touched[head.number] = head
                seq += 1
                head.count += 1
                before, at, body = head.hash, item.at, item.body
                head.hash = after = link(before, at, body)
                if at > head.updated:
                    head.updated = at
                size += len(body) + _ROW_BYTES
                answers += item.answers
                # As bytearray and int: the sqlite3 module looks for an adapter for bytes and bool,
                # each time in vain and at the price of half an insert.
                rows.append(
                    (seq, head.number, head.count, at, item.verb, item.sender, item.recipient, item.id,
                     bytearray(body), int(item.answers), bytearray(before), bytearray(after))
                )  # fmt: skip
            elif isinstance(item, ThreadInfo):
                found = self._heads.find(item.id)
                head = found or self._heads.begin(item)
                if found is None or head.learn(item):
                    touched[head.number] = head
            if waiter is not None:
                (to_sync if strict or self._strict else done).append((waiter, seq))
        if touched or self._mixed:
            heads = list(touched.values())
            pages = self._pages(batch, heads, size, answers)
            self._commit(rows, heads)
            self._keeper.wrote(pages)
        self._seq = seq
        return done, to_sync

    def _pages(self, batch: list[_Entry], heads: list[Head], size: int, answers: int) -> int:
        """About how many a commit touches: what is found by a random key, or lies far back, has one of its own."""
        pages = _ENDS + answers + (size + _ROW_BYTES * len(heads)) // _PAGE_BYTES
        near = self._heads.newest - _NEIGHBOURS
        described = 0
        for head in heads:
            if head.number < near:
                pages += 1
            if head.news is not None:
                described = 2
        if self._mixed:
            pages += 1
            for item, _, _ in batch:
                if isinstance(item, Change):
                    pages += 2
        return pages + described

    def _unfolded(self, batch: list[_Entry], done: _Done, to_sync: _Done) -> list[_Entry]:
        """The batch with all but records and threads carried out, in a transaction that is left open."""
        self._db.execute("BEGIN IMMEDIATE")
        others: list[Other] = [item for item, _, _ in batch if not isinstance(item, _PLAIN)]
        outcomes = iter(carry_out(self._db, others))
        entries: list[_Entry] = []
        for entry in batch:
            item, waiter, strict = entry
            if isinstance(item, _PLAIN):
                entries.append(entry)
                continue
            records, result = next(outcomes)
            entries += [(record, None, False) for record in records]
            if type(item) is Reply:
                entries.append((None, waiter, strict))
            elif waiter is not None:
                (to_sync if strict or self._strict else done).append((waiter, result))
        return entries

    def _commit(self, rows: list[tuple[object, ...]], heads: list[Head]) -> None:
        db = self._db
        if not db.in_transaction:
            db.execute("BEGIN IMMEDIATE")
        self._heads.save(heads)
        if rows:
            _INSERT.execute(db, rows)
        db.execute("COMMIT")

    def _take_back(self) -> None:
        if self._db.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # some errors have rolled back already
                self._db.execute("ROLLBACK")
        self._heads.forget()
        self._seq = None

    def _fail(self, batch: list[_Entry], error: StoreError) -> None:
        failed: _Done = []
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
        self._deliver(failed)

    def _without_cut_off(self, batch: list[_Entry]) -> list[_Entry]:
        """The batch without the records whose predecessors are lost; the next who waits for them is told."""
        kept: list[_Entry] = []
        failed: _Done = []
        for entry in batch:
            item, waiter, _ = entry
            lost = [thread for thread in threads_of(item) if thread in self._lost]
            if item is None and waiter is not None and self._lost:
                failed.append((waiter, next(reversed(self._lost.values()))))
            elif not lost:
                kept.append(entry)
            elif waiter is not None:
                failed.append((waiter, self._lost[lost[0]]))
                for thread in lost:
                    self._lost.pop(thread, None)
        self._deliver(failed)
        return kept

    def _start_log_over(self) -> None:
        """Stalls for milliseconds, rarely. A reader that needs the old log makes it wait for another time."""
        try:
            self._db.execute("PRAGMA busy_timeout = 0")
            self._db.execute("PRAGMA wal_checkpoint(RESTART)").fetchone()
            self._db.execute(f"PRAGMA busy_timeout = {connections.BUSY_MS}")
        except sqlite3.Error as error:
            log.warning("the log could not be started over, will try again: %s", error)
        self._keeper.log_is_long = False

    def _synced(self, results: _Done, error: OSError | None) -> None:
        if error is not None:
            log.error("the record could not be synced to the disk: %s", error)
            told = connections.explain(error, self._path)
            results = [(waiter, told) for waiter, _ in results]
        self._deliver(results)

    def _deliver(self, results: _Done) -> None:
        if results:
            try:
                results[0][0].get_loop().call_soon_threadsafe(self._settle, results)
            except RuntimeError:  # a closed loop has nobody left to tell
                return

    # On the event loop again.

    def _settle(self, results: _Done) -> None:
        self._untold += results
        if len(self._untold) == len(results):
            self._tell()

    def _tell(self) -> None:
        """In order, ``ENOUGH`` in one round of the loop: what these do next begins before the others go on."""
        told = min(ENOUGH, len(self._untold))
        self.gathering.answered(told)
        for _ in range(told):
            waiter, result = self._untold.popleft()
            if waiter.done():  # cancelled meanwhile
                continue
            if isinstance(result, StoreError):
                waiter.set_exception(result)
            else:
                waiter.set_result(result)
        if self._untold:
            asyncio.get_running_loop().call_soon(self._tell)


def _threads(entries: list[_Entry]) -> set[str]:
    """Those that entries are about and that may exist already."""
    named: set[str] = set()
    fresh: set[str] = set()
    for item, _, _ in entries:
        if isinstance(item, Record):
            named.add(item.thread)
        elif isinstance(item, ThreadInfo):
            (fresh if item.fresh else named).add(item.id)
    return named - fresh


def _bare(record: Record) -> ThreadInfo:
    """For a record on a thread that nobody described."""
    return ThreadInfo(record.thread, "", record.sender, None, "", record.at)
