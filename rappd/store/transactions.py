"""Writes a batch of entries as one SQLite transaction."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sqlite3
from collections import OrderedDict
from collections.abc import Container, Set
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from envelopes.codecs.emergence import GENESIS, link
from rappd.store import connections
from rappd.store.records import Event, ListenerState, Record, ThreadInfo
from rappd.store.write_operations import InboxReply, Item, MultiRowStatement, Other, SqlStatement, execute

Waiter = asyncio.Future[Any]
Entry = tuple[Item | None, Waiter | None, bool]
"""An item, its waiter if any, and True where that one waits for the disk."""
Resolutions = list[tuple[Waiter, Any]]
"""Waiters, each with its result."""


class CommitResult(NamedTuple):
    """Waiters to resolve now, waiters to resolve after a sync, about how many pages were written, followed events."""

    done: Resolutions
    to_sync: Resolutions
    pages: int
    followed: list[Event]


_PLAIN = (Record, ThreadInfo, type(None))
_PAGE_BYTES = 4096
_ROW_BYTES = 250  # beside the body
_ENDS = 2  # of events and their index: a page of each
_NEIGHBOURS = 64  # threads that began after one another, whose rows share pages
_THREADS_A_PAGE = 20
_IDS_A_PAGE = 60  # of the index of threads by their ids, which are random
_ANSWERS_A_PAGE = 50
_INSERT = MultiRowStatement("INSERT INTO events VALUES", 13)
_KEEP_STATE = "INSERT OR REPLACE INTO listener_states VALUES(?,?,?,?,?,?)"


class TransactionWriter:
    """Used on the writer's thread only. Heads in memory run ahead of COMMIT: call ``rollback`` after any error.

    ``followed`` are the threads whose committed events are returned.
    """

    def __init__(self, path: Path, followed: Container[str] = ()) -> None:
        self._followed = followed
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
        states: list[ListenerState] = []
        followed: list[Event] = []
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
                     bytearray(body), int(item.answers), bytearray(before), bytearray(after), item.parent)
                )  # fmt: skip
                if item.state is not None:
                    states.append(item.state)
                if item.thread in self._followed:
                    names = (item.verb, item.sender, item.recipient, item.id)
                    followed.append(
                        Event(seq, item.thread, head.count, at, *names, body, before, after, item.parent)
                    )
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
            self._commit(rows, heads, states)
        self._seq = seq
        return CommitResult(done, to_sync, pages, followed)

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

    def _commit(
        self, rows: list[tuple[object, ...]], heads: list[ThreadHead], states: list[ListenerState]
    ) -> None:
        db = self.db
        if not db.in_transaction:
            db.execute("BEGIN IMMEDIATE")
        self._heads.save(heads)
        if rows:
            _INSERT.execute(db, rows)
        if states:
            db.executemany(_KEEP_STATE, states)
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


KNOWN_THREADS = 8_192

_FIND = MultiRowStatement(
    "SELECT id, number, count, head, session, title != '', updated FROM (VALUES",
    1,
    ") AS it CROSS JOIN threads ON substr(id, 25) = substr(it.column1, 25) AND id = it.column1",
    alone="""SELECT id, number, count, head, session, title != '', updated FROM threads
    WHERE (substr(id, 25), id) = (substr(?1, 25), ?1)""",
)
_HIGHEST = "SELECT max(number) FROM threads"
_ADVANCE = MultiRowStatement(
    "UPDATE threads SET count = it.column2, head = it.column3, updated = it.column4 FROM (VALUES",
    4,
    ") AS it WHERE number = it.column1",
    alone="UPDATE threads SET count = ?2, head = ?3, updated = ?4 WHERE number = ?1",
)
_DESCRIBE = MultiRowStatement(
    """INSERT INTO threads(number, id, workspace, caller, session, title, created, updated, count, head, parent, path)
    VALUES""",
    12,
    """ON CONFLICT(number) DO UPDATE SET
    session = coalesce(excluded.session, session),
    title = CASE title WHEN '' THEN excluded.title ELSE title END,
    updated = excluded.updated, count = excluded.count, head = excluded.head,
    path = CASE WHEN parent IS NULL THEN excluded.path ELSE path END, parent = coalesce(parent, excluded.parent)""",
)

_TITLED = "INSERT OR IGNORE INTO late_titles(thread, count) VALUES(?, ?)"


class ThreadHead(msgspec.Struct):
    """A thread's number, the hash and number of its last event, and the rest of its row."""

    number: int
    count: int
    hash: bytes
    session: str | None
    titled: bool
    updated: int
    news: ThreadInfo | None = None
    """Changes of the row, written by the next ``save``."""
    titled_at: int = 0
    """Number of events that it had when it got the title in ``news``."""

    def merge_info(self, info: ThreadInfo) -> bool:
        """Merges new information; False when the row has all of it already."""
        if (info.session is None or info.session == self.session) and (self.titled or not info.title):
            return False
        if self.news is None:
            self.news = ThreadInfo(info.id, info.workspace, info.caller, None, "", info.at)
        if info.session is not None:
            self.session = self.news.session = info.session
        if not self.titled:
            self.news.title = info.title
            self.titled = bool(info.title)
            self.titled_at = self.count if self.titled else 0
        return True


class ThreadHeads:
    """An LRU cache of thread heads. Used on the writer's thread only.

    They run ahead of the tables until ``save`` is committed; after a rollback, ``forget`` them all.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: OrderedDict[str, ThreadHead] = OrderedDict()
        self._last_number: int | None = None

    def look_up(self, threads: Set[str]) -> None:
        """Loads the heads of these threads for ``find``."""
        unknown = [(thread,) for thread in threads if thread not in self._known]
        for thread, *row in _FIND.execute(self._db, unknown) if unknown else ():
            self._known[thread] = ThreadHead(*row)

    def find(self, thread: str) -> ThreadHead | None:
        """Returns the head of a thread that was looked up; None when there is no such thread."""
        head = self._known.get(thread)
        if head is not None:
            self._known.move_to_end(thread)
        return head

    @property
    def newest(self) -> int:
        """The highest thread number."""
        if self._last_number is None:
            self._last_number = int(self._db.execute(_HIGHEST).fetchone()[0] or 0)
        return self._last_number

    def add(self, info: ThreadInfo) -> ThreadHead:
        """Adds a thread that does not exist yet and returns its head."""
        self._last_number = self.newest + 1
        news = ThreadInfo(
            info.id, info.workspace, info.caller, info.session, info.title, info.at,
            parent=info.parent, path=info.path,
        )  # fmt: skip  # a copy: ``merge_info`` may change it
        head = ThreadHead(self._last_number, 0, GENESIS, info.session, bool(info.title), info.at, news)
        self._known[info.id] = head
        return head

    def save(self, heads: list[ThreadHead]) -> None:
        """Writes their rows, inside the caller's transaction."""
        advanced: list[tuple[object, ...]] = []
        described: list[tuple[object, ...]] = []
        for head in heads:
            info, head.news = head.news, None
            if info is None:
                advanced.append((head.number, head.count, bytearray(head.hash), head.updated))
            else:
                described.append(
                    (head.number, info.id, info.workspace, info.caller, info.session, info.title,
                     info.at, head.updated, head.count, bytearray(head.hash), info.parent, info.path)
                )  # fmt: skip
                if head.titled_at:
                    self._db.execute(_TITLED, (head.number, head.titled_at))
                    head.titled_at = 0
        if described:
            _DESCRIBE.execute(self._db, described)
        if advanced:
            _ADVANCE.execute(self._db, advanced)
        while len(self._known) > KNOWN_THREADS:
            self._known.popitem(last=False)

    def forget(self) -> None:
        """Drops every head after a rollback."""
        self._known.clear()
        self._last_number = None
