"""Reading the store: plain functions on one read-only connection, with the daemon up or down."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import TracebackType
from typing import Any

from rappd.errors import AmbiguousError, NotFoundError
from rappd.store.connections import in_words, open_reading
from rappd.store.records import Counts, Event, ThreadBelow, ThreadRow

_THREAD = (
    "SELECT id, workspace, caller, session, title, created, updated, count, head, parent, path FROM threads"
)
_EVENT = """SELECT seq, threads.id, n, at, verb, sender, recipient, events.id, body, prev, hash, events.parent
    FROM events JOIN threads ON threads.number = events.thread"""
RECENT_BYTES = 8 << 20
_NOTE = "SELECT n FROM events"
_IS = "WHERE (substr(id, 25), id) = (substr(?1, 25), ?1)"  # as the index has it
_OF = "WHERE events.thread = (SELECT number FROM threads WHERE (substr(id, 25), id) = (substr(?1, 25), ?1))"
# Looks through all ids, in their index: one more, for what people type now and then, would cost every turn.
_BEGINS = """WHERE number IN (
    SELECT number FROM threads WHERE id >= ?1 AND id < ?1 || '~' ORDER BY id LIMIT 5) ORDER BY id"""

_BELOW = f"""WITH RECURSIVE below(row, thread) AS (
        SELECT number, id FROM threads {_IS}
        UNION SELECT threads.number, threads.id FROM below CROSS JOIN threads ON parent = thread LIMIT ?2
    ) {_THREAD} JOIN below ON number = row ORDER BY json_array_length(path), created, number"""  # noqa: S608

_AFTER = f"""WITH RECURSIVE below(row, thread) AS (
        SELECT number, id FROM threads {_IS}
        UNION SELECT threads.number, threads.id FROM below CROSS JOIN threads ON parent = thread
    ) {_EVENT} WHERE events.thread IN (SELECT row FROM below) AND seq > (
        SELECT min(seq) FROM events WHERE events.thread IN (SELECT row FROM below) AND events.id = ?2
    ) ORDER BY seq LIMIT ?3"""  # noqa: S608

_LAST_TALKS = """WITH RECURSIVE one(name) AS (
        SELECT min(workspace) FROM threads WHERE workspace != 'brainstem'
        UNION ALL SELECT (
            SELECT min(workspace) FROM threads WHERE workspace > name AND workspace != 'brainstem'
        ) FROM one WHERE name IS NOT NULL
    ) SELECT name, (
        SELECT max(updated) FROM threads WHERE workspace = name AND workspace != 'brainstem'
    ) FROM one WHERE name IS NOT NULL"""  # each as the index has it


class Reader:
    """Every method takes a fresh look and raises ``StoreError`` when the file cannot be read.

    One thread at a time. A file that does not exist reads as an empty store.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        with in_words(path):
            self._db = open_reading(path)

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self._db.close()

    def threads(self, limit: int = 50, before: tuple[int, str] | None = None) -> list[ThreadRow]:
        """Threads that no other one began, the latest used first; ``before`` is the ``cursor`` of the last row seen."""
        where, values = ("AND (updated, id) < (?, ?)", before) if before else ("", ())
        rows = self.rows(
            f"{_THREAD} WHERE parent IS NULL {where} ORDER BY updated DESC, id DESC LIMIT ?",
            (*values, limit),
        )
        return [ThreadRow(*row) for row in rows]

    def find_thread(self, prefix: str) -> ThreadRow:
        """The thread whose id begins so, as screens show it. ``NotFoundError``, or ``AmbiguousError`` with the ids."""
        start = uuid_start(prefix)
        rows = self.rows(f"{_THREAD} {_IS if len(start) == 36 else _BEGINS}", (start,))
        if not rows or not start:
            raise NotFoundError(f'No thread "{prefix}".', do="`rappd threads list` shows them.")
        if len(rows) > 1:
            some = ", ".join(row[0] for row in rows[:4]) + (", …" if len(rows) > 4 else "")
            raise AmbiguousError(f'"{prefix}" fits several threads: {some}.', do="Type more of it.")
        return ThreadRow(*rows[0])

    def tree(self, prefix: str, limit: int = 1_000) -> list[ThreadRow]:
        """A thread and those below it, parents before children; at most so many. Raises what ``find_thread`` does."""
        root = self.find_thread(prefix)
        rows = self.rows(_BELOW, (root.id, limit))
        return [root, *(ThreadRow(*row) for row in rows if row[0] != root.id)]

    def names_below(self, thread: str) -> set[str]:
        """The names of the threads that a thread began."""
        rows = self.rows("SELECT path ->> '$[#-1]' FROM threads WHERE parent = ?", (thread,))
        return {row[0] for row in rows}

    def thread_events(
        self, prefix: str, *, after: int = 0, last: int | None = None, first: int | None = None
    ) -> list[Event]:
        """A thread's events in order: those with ``n`` above ``after``, or only the ``last`` or ``first`` so many."""
        thread = self.find_thread(prefix)
        if first is not None:
            rows = self.rows(f"{_EVENT} {_OF} AND n > ?2 ORDER BY n LIMIT ?3", (thread.id, after, first))
            return [Event(*row) for row in rows]
        # One statement each, so that events come from one moment even while more are written.
        rows = self.rows(
            f"{_EVENT} {_OF} AND n > ?2 ORDER BY n DESC LIMIT ?3",
            (thread.id, after, -1 if last is None else last),
        )
        return [Event(*row) for row in reversed(rows)]

    def recent_events(self, limit: int = 100, after_seq: int | None = None) -> list[Event]:
        """Events of all threads by ascending ``seq``: the latest, or the first ones after ``after_seq``.

        Fewer than ``limit`` where pictures make them large: together at most ``RECENT_BYTES``, and at least one.
        """
        latest = after_seq is None
        where = "ORDER BY seq DESC" if latest else "WHERE seq > :after ORDER BY seq"
        found: list[Event] = []
        size = 0
        with in_words(self._path):
            for row in self._db.execute(
                f"{_EVENT} {where} LIMIT :limit", {"limit": limit, "after": after_seq}
            ):
                event = Event(*row)
                size += len(event.body)
                if found and size > RECENT_BYTES:
                    break
                found.append(event)
        return found[::-1] if latest else found

    def answer_to(self, caller: str, id: str) -> bytes | None:
        """The recorded reply to a turn that the caller gave this id, verbatim."""
        rows = self.rows(
            "SELECT body FROM events WHERE answers = 1 AND recipient = ? AND id = ? ORDER BY seq DESC LIMIT 1",
            (caller, id),
        )
        return bytes(rows[0][0]) if rows else None

    def threads_of(self, workspace: str) -> list[ThreadRow]:
        """Every thread of a workspace, the oldest first."""
        narrowed = "" if workspace == "brainstem" else "AND workspace != 'brainstem'"
        rows = self.rows(f"{_THREAD} WHERE workspace = ? {narrowed} ORDER BY created, number", (workspace,))
        return [ThreadRow(*row) for row in rows]

    def threads_below(self, caller: str, id: str | None = None) -> list[ThreadBelow]:
        """Threads below those of a caller; with ``id`` that one alone, by its index. Without it looks at all threads."""
        where = "AND (substr(t.id, 25), t.id) = (substr(?2, 25), ?2)" if id is not None else "AND ?2 IS NULL"
        rows = self.rows(
            f"""SELECT t.id, t.workspace, r.session, t.path FROM threads AS t CROSS JOIN threads AS r
                ON (substr(r.id, 25), r.id) = (substr(t.path ->> 0, 25), t.path ->> 0)
                WHERE t.parent IS NOT NULL AND r.session IS NOT NULL AND r.caller = ?1 {where}""",  # noqa: S608
            (caller, id),
        )
        return [ThreadBelow(*row) for row in rows]

    def threads_by(self, caller: str) -> list[ThreadRow]:
        """Every thread of a caller, the latest used first. Looks at all threads."""
        rows = self.rows(f"{_THREAD} WHERE caller = ? ORDER BY updated DESC, id DESC", (caller,))
        return [ThreadRow(*row) for row in rows]

    def has_session(self, caller: str, session: str) -> bool:
        """True when a caller has a thread of that session, which is JSON text. Looks at all threads."""
        rows = self.rows("SELECT 1 FROM threads WHERE caller = ? AND session = ? LIMIT 1", (caller, session))
        return bool(rows)

    def noted(self, thread: str, kind: str) -> bool:
        """True when a thread has a NOTE of that kind."""
        rows = self.rows(
            f"{_NOTE} {_OF} AND verb = 'NOTE' AND json_extract(CAST(body AS TEXT), '$.data.kind') = ?2 LIMIT 1",
            (thread, kind),
        )
        return bool(rows)

    def notes(self, thread: str, kind: str) -> list[bytes]:
        """The NOTEs of that kind on a thread, in order, as they were recorded."""
        rows = self.rows(
            f"""SELECT body FROM events {_OF} AND verb = 'NOTE'
                AND json_extract(CAST(body AS TEXT), '$.data.kind') = ?2 ORDER BY n""",  # noqa: S608
            (thread, kind),
        )
        return [bytes(row[0]) for row in rows]

    def after_event(self, thread: str, id: str, limit: int = 10_000) -> list[Event]:
        """The events of a thread, and of those below it, since the one of that id, in the order they were written."""
        rows = self.rows(_AFTER, (thread, id, limit))
        return [Event(*row) for row in rows]

    def last_notes(self, caller: str, kind: str) -> dict[str, int]:
        """The moment (µs since 1970) of the last NOTE of that kind, for each thread of a caller that has one."""
        rows = self.rows(
            """SELECT threads.id, max(at) FROM threads JOIN events ON events.thread = threads.number
                WHERE caller = ? AND verb = 'NOTE' AND json_extract(CAST(body AS TEXT), '$.data.kind') = ?
                GROUP BY threads.number""",
            (caller, kind),
        )
        return dict(rows)

    def events_of(self, thread: str) -> Iterator[Event]:
        """A thread's events in order, one after the other: for what is too long to hold at once."""
        with in_words(self._path):
            for row in self._db.execute(f"{_EVENT} {_OF} ORDER BY n", (thread,)):
                yield Event(*row)

    def last_talks(self) -> dict[str, float]:
        """The time each workspace last talked, in seconds since 1970; without the host's, which talks most.

        Goes from workspace to workspace by the index: the record may hold a hundred thousand threads.
        """
        rows = self.rows(_LAST_TALKS)
        return {workspace: updated / 1e6 for workspace, updated in rows}

    def rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Every row of a query; of the other tables, for modules of this package."""
        with in_words(self._path):
            return self._db.execute(statement, values).fetchall()

    def counts(self) -> Counts:
        """Counts threads and events. Events are never removed, so the highest ``seq`` counts them."""
        rows = self.rows("SELECT (SELECT count(*) FROM threads), (SELECT coalesce(max(seq), 0) FROM events)")
        return Counts(*rows[0])


def uuid_start(prefix: str) -> str:
    """Lower case; hyphens put where a UUID has them when they were left out."""
    text = prefix.strip().lower()
    if not re.fullmatch(r"[0-9a-f]{9,32}", text):
        return text
    cuts = (0, 8, 12, 16, 20, 32)
    return "-".join(part for a, b in pairwise(cuts) if (part := text[a:b]))
