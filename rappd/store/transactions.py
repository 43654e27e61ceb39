"""Writes a batch of entries as one SQLite transaction."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from envelopes.codecs.hash_chain import link
from rappd.store import connections
from rappd.store.operations import InboxReply, Item, MultiRowStatement, Other, SqlStatement, execute
from rappd.store.records import Record, ThreadInfo
from rappd.store.thread_heads import ThreadHead, ThreadHeads

Waiter = asyncio.Future[Any]
Entry = tuple[Item | None, Waiter | None, bool]
"""An item, its waiter if any, and True where that one waits for the disk."""
Resolutions = list[tuple[Waiter, Any]]
"""Waiters, each with its result."""


class CommitResult(NamedTuple):
    """Waiters to resolve now, waiters to resolve after a sync, and about how many pages were written."""

    done: Resolutions
    to_sync: Resolutions
    pages: int


_PLAIN = (Record, ThreadInfo, type(None))
_PAGE_BYTES = 4096
_ROW_BYTES = 250  # beside the body
_ENDS = 2  # of events and their index: a page of each
_NEIGHBOURS = 64  # threads that began after one another, whose rows share pages
_THREADS_A_PAGE = 20
_IDS_A_PAGE = 60  # of the index of threads by their ids, which are random
_ANSWERS_A_PAGE = 50
_INSERT = MultiRowStatement("INSERT INTO events VALUES", 12)


class TransactionWriter:
    """Used on the writer's thread only. Heads in memory run ahead of COMMIT: call ``rollback`` after any error."""

    def __init__(self, path: Path) -> None:
        self.db = connections.open_writing(path)
        self._heads = ThreadHeads(self.db)
        self._seq: int | None = None

    @property
    def seq(self) -> int:
        """The highest committed ``seq``."""
        if self._seq is None:
            self._seq = int(self.db.execute("SELECT max(seq) FROM events").fetchone()[0] or 0)
        return self._seq

    @property
    def known_seq(self) -> int | None:
        """``seq`` without a look into the file; None before its first use. Thread-safe."""
        return self._seq

    def write(self, batch: list[Entry], *, strict: bool) -> CommitResult:
        """Commits a batch as one transaction. ``strict``: every waiter waits for the disk."""
        mixed = not all(isinstance(item, _PLAIN) for item, _, _ in batch)
        seq = self.seq
        size = answers = pages = 0
        rows: list[tuple[object, ...]] = []
        touched: dict[int, ThreadHead] = {}
        done: Resolutions = []
        to_sync: Resolutions = []
        entries = self._unfolded(batch, done, to_sync, strict) if mixed else batch
        self._heads.look_up(_threads(entries))
        for item, waiter, waits_for_disk in entries:
            if isinstance(item, Record):
                head = self._heads.find(item.thread) or self._heads.add(_bare(item))
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
                head = found or self._heads.add(item)
                if found is None or head.merge_info(item):
                    touched[head.number] = head
            if waiter is not None:
                (to_sync if waits_for_disk or strict else done).append((waiter, seq))
        if touched or mixed:
            heads = list(touched.values())
            pages = self._pages(batch, heads, size, answers, mixed=mixed)
            self._commit(rows, heads)
        self._seq = seq
        return CommitResult(done, to_sync, pages)

    def rollback(self) -> None:
        """Rolls the open transaction back and forgets the heads in memory."""
        if self.db.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # some errors have rolled back already
                self.db.execute("ROLLBACK")
        self._heads.forget()
        self._seq = None

    def _pages(
        self, batch: list[Entry], heads: list[ThreadHead], size: int, answers: int, *, mixed: bool
    ) -> int:
        """Estimates the pages that a commit touches: a random key, or an old thread, has a page of its own."""
        pages = _ENDS + (size + _ROW_BYTES * len(heads)) // _PAGE_BYTES
        pages += _different(answers, self.seq // _ANSWERS_A_PAGE + 1)
        near = self._heads.newest - _NEIGHBOURS
        described = far = 0
        for head in heads:
            far += head.number < near
            described += head.news is not None
        if described:
            described = 2 + _different(described, self._heads.newest // _IDS_A_PAGE + 1)
        pages += _different(far, near // _THREADS_A_PAGE + 1)
        if mixed:
            pages += 1
            for item, _, _ in batch:
                if isinstance(item, SqlStatement):
                    pages += 2
        return pages + described

    def _unfolded(
        self, batch: list[Entry], done: Resolutions, to_sync: Resolutions, strict: bool
    ) -> list[Entry]:
        """Executes all but records and threads in a transaction that stays open, and returns the records to append."""
        self.db.execute("BEGIN IMMEDIATE")
        others: list[Other] = [item for item, _, _ in batch if not isinstance(item, _PLAIN)]
        outcomes = iter(execute(self.db, others))
        entries: list[Entry] = []
        for entry in batch:
            item, waiter, waits_for_disk = entry
            if isinstance(item, _PLAIN):
                entries.append(entry)
                continue
            records, result = next(outcomes)
            entries += [(record, None, False) for record in records]
            if type(item) is InboxReply:
                entries.append((None, waiter, waits_for_disk))
            elif waiter is not None:
                (to_sync if waits_for_disk or strict else done).append((waiter, result))
        return entries

    def _commit(self, rows: list[tuple[object, ...]], heads: list[ThreadHead]) -> None:
        db = self.db
        if not db.in_transaction:
            db.execute("BEGIN IMMEDIATE")
        self._heads.save(heads)
        if rows:
            _INSERT.execute(db, rows)
        db.execute("COMMIT")


def _different(count: int, pages: int) -> int:
    """Estimates how many of ``pages`` are touched by ``count`` rows at random places."""
    return round(pages * -math.expm1(-count / pages)) if count else 0


def _threads(entries: list[Entry]) -> set[str]:
    """Returns the threads of these entries that may exist already."""
    named: set[str] = set()
    fresh: set[str] = set()
    for item, _, _ in entries:
        if isinstance(item, Record):
            named.add(item.thread)
        elif isinstance(item, ThreadInfo):
            (fresh if item.fresh else named).add(item.id)
    return named - fresh


def _bare(record: Record) -> ThreadInfo:
    """Returns the thread info of a record on a thread without a description."""
    return ThreadInfo(record.thread, "", record.sender, None, "", record.at)
