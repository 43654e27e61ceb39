"""Caches the last hash of each thread's chain for the writer."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Set

import msgspec

from envelopes.codecs.hash_chain import GENESIS
from rappd.store.operations import MultiRowStatement
from rappd.store.records import ThreadInfo

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
    "INSERT INTO threads(number, id, workspace, caller, session, title, created, updated, count, head) VALUES",
    10,
    """ON CONFLICT(number) DO UPDATE SET
    session = coalesce(excluded.session, session),
    title = CASE title WHEN '' THEN excluded.title ELSE title END,
    updated = excluded.updated, count = excluded.count, head = excluded.head""",
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
            info.id, info.workspace, info.caller, info.session, info.title, info.at
        )  # a copy: ``merge_info`` may change it
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
                     info.at, head.updated, head.count, bytearray(head.hash))
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
