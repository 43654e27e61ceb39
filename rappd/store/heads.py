"""Where each thread's chain ends, remembered by the writer while it is busy with the thread."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from dataclasses import dataclass, replace

from envelopes.chain import GENESIS
from rappd.store.records import ThreadInfo

KNOWN_THREADS = 8_192

_FIND = "SELECT number, count, head, session, title != '', updated FROM threads WHERE id = ?"
_HIGHEST = "SELECT max(number) FROM threads"
_ADVANCE = "UPDATE threads SET count = ?, head = ?, updated = ? WHERE number = ?"
_DESCRIBE = """INSERT INTO threads(number, id, workspace, caller, session, title, created, updated, count, head)
    VALUES(?,?,?,?,?,?,?,?,?,?) ON CONFLICT(number) DO UPDATE SET
    session = coalesce(excluded.session, session),
    title = CASE title WHEN '' THEN excluded.title ELSE title END,
    updated = excluded.updated, count = excluded.count, head = excluded.head"""


@dataclass(slots=True)
class Head:
    """A thread's number in the tables, its last event, and what its row tells beside."""

    number: int
    count: int
    hash: bytes
    session: str | None
    titled: bool
    updated: int
    news: ThreadInfo | None = None
    """What the row still lacks; written with the next ``save``."""

    def learn(self, info: ThreadInfo) -> bool:
        """Takes in what ``info`` adds; False when the row says all of it already."""
        if (info.session is None or info.session == self.session) and (self.titled or not info.title):
            return False
        if self.news is None:
            self.news = ThreadInfo(info.id, info.workspace, info.caller, None, "", info.at)
        if info.session is not None:
            self.session = self.news.session = info.session
        if not self.titled:
            self.news.title = info.title
            self.titled = bool(info.title)
        return True


class Heads:
    """The heads of threads in use, the least recently used forgotten first. For one thread only.

    They run ahead of the tables until ``save`` is committed; after a rollback, ``forget`` them all.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._known: OrderedDict[str, Head] = OrderedDict()
        self._last_number: int | None = None

    def find(self, thread: str) -> Head | None:
        """The thread's head from memory, else from the tables; None when there is no such thread."""
        head = self._known.get(thread)
        if head is not None:
            self._known.move_to_end(thread)
            return head
        row = self._db.execute(_FIND, (thread,)).fetchone()
        return None if row is None else self._remember(thread, Head(*row))

    def begin(self, info: ThreadInfo) -> Head:
        """The head of a thread that does not exist yet."""
        if self._last_number is None:
            self._last_number = self._db.execute(_HIGHEST).fetchone()[0] or 0
        self._last_number += 1
        news = replace(info)  # ``learn`` may add to it
        head = Head(self._last_number, 0, GENESIS, info.session, bool(info.title), info.at, news)
        return self._remember(info.id, head)

    def save(self, heads: list[Head]) -> None:
        """Writes their rows, inside the caller's transaction."""
        advanced: list[tuple[object, ...]] = []
        described: list[tuple[object, ...]] = []
        for head in heads:
            info, head.news = head.news, None
            if info is None:
                advanced.append((head.count, head.hash, head.updated, head.number))
            else:
                described.append(
                    (head.number, info.id, info.workspace, info.caller, info.session, info.title,
                     info.at, head.updated, head.count, head.hash)
                )  # fmt: skip
        if described:
            self._db.executemany(_DESCRIBE, described)
        if advanced:
            self._db.executemany(_ADVANCE, advanced)

    def forget(self) -> None:
        """Nothing in memory is true any more; the tables are."""
        self._known.clear()
        self._last_number = None

    def _remember(self, thread: str, head: Head) -> Head:
        self._known[thread] = head
        if len(self._known) > KNOWN_THREADS:
            self._known.popitem(last=False)
        return head
