"""Entries into the tables: a batch of them as one transaction, on the writer's connection."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sqlite3
from pathlib import Path
from typing import Any, NamedTuple

from envelopes.codecs.hash_chain import link
from rappd.store import connections
from rappd.store.changes import Change, Item, Other, Reply, carry_out
from rappd.store.heads import Head, Heads
from rappd.store.records import Record, ThreadInfo
from rappd.store.together import Together

Waiter = asyncio.Future[Any]
Entry = tuple[Item | None, Waiter | None, bool]
"""What is to be written, who waits for it, and whether for the disk."""
Done = list[tuple[Waiter, Any]]
"""Who is told what."""


class Written(NamedTuple):
    """Who can be told now, who once it is on the disk, and about how many pages were written."""

    done: Done
    to_sync: Done
    pages: int


_PLAIN = (Record, ThreadInfo, type(None))
_PAGE_BYTES = 4096
_ROW_BYTES = 250  # beside the body
_ENDS = 2  # of events and their index: a page of each
_NEIGHBOURS = 64  # threads that began after one another, whose rows share pages
_THREADS_A_PAGE = 20
_ANSWERS_A_PAGE = 50
_INSERT = Together("INSERT INTO events VALUES", 12)


class Tables:
    """For whoever has the writer's lock. Heads in memory run ahead of COMMIT; ``take_back`` after any error."""

    def __init__(self, path: Path) -> None:
        self.db = connections.open_writing(path)
        self._heads = Heads(self.db)
        self._seq: int | None = None

    @property
    def seq(self) -> int:
        """The highest ``seq`` that is written."""
        if self._seq is None:
            self._seq = int(self.db.execute("SELECT max(seq) FROM events").fetchone()[0] or 0)
        return self._seq

    @property
    def knows_seq(self) -> bool:
        """Whether ``seq`` takes no look into the file."""
        return self._seq is not None

    @property
    def known_seq(self) -> int | None:
        """``seq``, from any thread; None before it was first needed."""
        return self._seq

    def carried(self) -> tuple[bytes, int]:
        """The mark of the intake that is theirs, and the number of the last frame in it that they have."""
        mark, carried = self.db.execute("SELECT mark, carried FROM intake").fetchone()
        return mark, carried

    def write(self, batch: list[Entry], *, strict: bool, carried: int | None = None) -> Written:
        """One transaction. ``strict``: everybody waits for the disk. ``carried``: the frame of the intake that this
        completes."""
        mixed = not all(isinstance(item, _PLAIN) for item, _, _ in batch)
        seq = self.seq
        size = answers = pages = 0
        rows: list[tuple[object, ...]] = []
        touched: dict[int, Head] = {}
        done: Done = []
        to_sync: Done = []
        entries = self._unfolded(batch, done, to_sync, strict) if mixed else batch
        self._heads.look_up(_threads(entries))
        for item, waiter, waits_for_disk in entries:
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
                (to_sync if waits_for_disk or strict else done).append((waiter, seq))
        if touched or mixed or carried is not None:
            heads = list(touched.values())
            pages = self._pages(batch, heads, size, answers, mixed=mixed)
            self._commit(rows, heads, carried)
        self._seq = seq
        return Written(done, to_sync, pages)

    def take_back(self) -> None:
        """The transaction under way, and all that memory has: the tables are true."""
        if self.db.in_transaction:
            with contextlib.suppress(sqlite3.Error):  # some errors have rolled back already
                self.db.execute("ROLLBACK")
        self._heads.forget()
        self._seq = None

    def _pages(self, batch: list[Entry], heads: list[Head], size: int, answers: int, *, mixed: bool) -> int:
        """About how many a commit touches: what is found by a random key, or lies far back, has one of its own."""
        pages = _ENDS + (size + _ROW_BYTES * len(heads)) // _PAGE_BYTES
        pages += _different(answers, self.seq // _ANSWERS_A_PAGE + 1)
        near = self._heads.newest - _NEIGHBOURS
        described = far = 0
        for head in heads:
            far += head.number < near
            if head.news is not None:
                described = 2
        pages += _different(far, near // _THREADS_A_PAGE + 1)
        if mixed:
            pages += 1
            for item, _, _ in batch:
                if isinstance(item, Change):
                    pages += 2
        return pages + described

    def _unfolded(self, batch: list[Entry], done: Done, to_sync: Done, strict: bool) -> list[Entry]:
        """The batch with all but records and threads carried out, in a transaction that is left open."""
        self.db.execute("BEGIN IMMEDIATE")
        others: list[Other] = [item for item, _, _ in batch if not isinstance(item, _PLAIN)]
        outcomes = iter(carry_out(self.db, others))
        entries: list[Entry] = []
        for entry in batch:
            item, waiter, waits_for_disk = entry
            if isinstance(item, _PLAIN):
                entries.append(entry)
                continue
            records, result = next(outcomes)
            entries += [(record, None, False) for record in records]
            if type(item) is Reply:
                entries.append((None, waiter, waits_for_disk))
            elif waiter is not None:
                (to_sync if waits_for_disk or strict else done).append((waiter, result))
        return entries

    def _commit(self, rows: list[tuple[object, ...]], heads: list[Head], carried: int | None) -> None:
        db = self.db
        if not db.in_transaction:
            db.execute("BEGIN IMMEDIATE")
        self._heads.save(heads)
        if rows:
            _INSERT.execute(db, rows)
        if carried is not None:
            db.execute("UPDATE intake SET carried = ?", (carried,))
        db.execute("COMMIT")


def _different(count: int, pages: int) -> int:
    """How many of so many pages are touched by so many rows that lie anywhere."""
    return round(pages * -math.expm1(-count / pages)) if count else 0


def _threads(entries: list[Entry]) -> set[str]:
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
