"""Signs anchors of the event log, and checks that what is signed continues what was signed before."""

from __future__ import annotations

import logging
import sqlite3
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

import orjson

from envelopes.codecs.emergence import GENESIS
from envelopes.identity.anchor import (
    ABSENT,
    Anchor,
    BadAnchorError,
    EventRoot,
    Note,
    bucket_hash,
    entry,
    names_hash,
    parts,
    read_anchor,
    root_of,
    sign_anchor,
    thread_key,
)
from envelopes.identity.keys import IdentityKey
from rappd.store.anchor_file import NAME, AnchorFile
from rappd.store.connections import in_words, is_damage, open_reading
from rappd.store.write_ahead_log import SqliteWalFile

log = logging.getLogger(__name__)

_LISTED = 20
_TRIES = 5
_AT_ONCE = 500
_MANY = 20_000

_COLUMNS = """threads.number, threads.id, workspace, caller, title, coalesce(late_titles.count, 0),
    threads.count, threads.head"""
_TITLES = "LEFT JOIN late_titles ON late_titles.thread = threads.number"
_ROW = f"SELECT {_COLUMNS} FROM threads {_TITLES}"  # noqa: S608 - constants
_TOUCHED = f"{_ROW} WHERE threads.number IN (SELECT DISTINCT thread FROM events WHERE seq > ?)"  # noqa: S608
_ALL = f"{_ROW} WHERE threads.count > 0"
_BY_NUMBER = f"{_ROW} WHERE threads.number = ?"
_SOME = f"{_ROW} WHERE threads.number IN (SELECT value FROM json_each(?))"  # noqa: S608
_BY_ID = f"{_ROW} WHERE (substr(threads.id, 25), threads.id) = (substr(?1, 25), ?1)"
_STATE = """SELECT (SELECT coalesce(max(seq), 0) FROM events), (SELECT counter FROM anchored),
    (SELECT id FROM database_id)"""


class AnchorView(TypedDict):
    """The newest anchor, the number of events after it, and what contradicts it."""

    counter: int
    events: int
    at: int
    closed: bool
    unanchored: int
    problems: list[str]


@dataclass(slots=True)
class AnchorReport:
    """The event log compared with its newest anchor. ``problems`` is empty when it continues it.

    ``events`` is what the log has now; ``unanchored`` how many of them came after the anchor.
    """

    anchor: Anchor | None = None
    events: int = 0
    problems: list[str] = field(default_factory=list)
    signed: bool = False

    @property
    def unanchored(self) -> int:
        """Number of events after the anchor."""
        return max(0, self.events - self.anchor.events) if self.anchor else self.events

    def as_json(self) -> AnchorView:
        """For scripts and screens."""
        anchor = self.anchor
        return {
            "counter": anchor.counter if anchor else 0,
            "events": anchor.events if anchor else 0,
            "at": anchor.at if anchor else 0,
            "closed": anchor.closed if anchor else False,
            "unanchored": self.unanchored,
            "problems": self.problems,
        }


def check(db: sqlite3.Connection, file: AnchorFile, public: bytes) -> AnchorReport:
    """Compares the database with its newest anchor by counters and totals alone. Reads a handful of rows.

    ``public`` is the identity key. Raises ``StoreError`` or ``sqlite3.Error`` when a file cannot be read.
    """
    for _ in range(_TRIES):
        body = file.newest()
        events, counter, database = db.execute(_STATE).fetchone()
        if file.newest() == body:  # else another was signed in between
            break
    report = AnchorReport(events=events)
    report.anchor = _trusted(body, public, report)
    if not report.problems:
        _compare_totals(report, counter, file, database, at_start=events, restored=file.restored)
    return report


def continues(db: sqlite3.Connection, number: int, old: bytes) -> str:
    """ "" when a thread still begins with the events of its entry ``old``, else how it differs.

    ``number`` is the one that it had then; it is looked for under others as well.
    """
    try:
        return _continues(db, number, old)
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return "has events that cannot be read"


def _continues(db: sqlite3.Connection, number: int, old: bytes) -> str:
    key, count, head, names = parts(old)
    row = db.execute(_BY_NUMBER, (number,)).fetchone()
    if row is None or thread_key(row[1]) != key:
        row = db.execute(_BY_ID, (thread_name(key),)).fetchone()
    if row is None:
        return f"is gone; it had {count} events when it was signed"
    found = db.execute("SELECT hash FROM events WHERE thread = ? AND n = ?", (row[0], count)).fetchone()
    if found is None:
        return f"had {count} events when it was signed and has fewer now"
    if found[0] != head:
        return f"its first {count} events are not those that were signed"
    if _names_at(row, count) != names:
        return "its caller, title or workspace is not what was signed"
    return ""


def thread_name(key: bytes) -> str:
    """The id of the thread that has this key in its entry."""
    return str(uuid.UUID(bytes=key))


class Anchorer:
    """Signs anchors of one database into ``anchors.db``. For one thread; every method blocks on the disk.

    Threads that got events since the last anchor are compared with their entries first, so that an anchor never
    covers what contradicts the one before it.
    """

    def __init__(self, database: Path, key: IdentityKey) -> None:
        self._database = database
        self._key = key
        self._wal = SqliteWalFile(database)
        self._file = AnchorFile(database.with_name(NAME), writing=True)
        self._db = open_reading(database)
        self._newest: Anchor | None = None
        self._root: EventRoot | None = None
        self._at_start: int | None = None
        self._id = ""

    @property
    def is_new(self) -> bool:
        """There are no anchors yet, and so many events that signing the first takes a while."""
        with in_words(self._database):
            events: int = self._db.execute(_STATE).fetchone()[0]
        return events > _MANY and self._file.newest() is None

    @property
    def file(self) -> AnchorFile:
        """The file that anchors are written to."""
        return self._file

    @property
    def newest(self) -> Anchor | None:
        """The newest anchor, once one was read or signed here."""
        return self._newest

    def close(self) -> None:
        """Releases the files."""
        self._db.close()
        self._wal.close()
        self._file.close()

    def mark_lost(self) -> None:
        """Notes that the log and its anchors were gone when the database was made: told until it is accepted."""
        self._file.mark_contradicted(LOST)

    def open_log(self) -> AnchorReport:
        """At start: checks the log against its newest anchor and signs that it is open.

        Nothing may be appended before this returns.
        """
        return self._advance(closed=False, opening=True)

    def advance(self, *, closed: bool = False) -> AnchorReport:
        """Signs what was appended since the last anchor, if anything; nothing where the log contradicts it."""
        return self._advance(closed=closed, opening=False)

    def accept(self) -> AnchorReport:
        """Signs the log as it is, whatever was signed before. For its owner, who knows why it differs."""
        with in_words(self._database):
            self._db.execute("BEGIN")
            try:
                events, counter, self._id = self._db.execute(_STATE).fetchone()
                return self._sign_anew("accepted", events, counter, self._claimed_newest(), closed=True)
            finally:
                self._db.execute("COMMIT")

    def _advance(self, *, closed: bool, opening: bool) -> AnchorReport:
        with in_words(self._database):
            self._db.execute("BEGIN")
            try:
                events, counter, self._id = self._db.execute(_STATE).fetchone()
                report = AnchorReport(events=events)
                if opening and self._at_start is None:
                    self._at_start = events
                restored = opening and self._file.restored
                if self._root is None:
                    self._read(report, restored=restored)
                report.anchor = self._newest
                if not report.problems:
                    _compare_totals(
                        report, counter, self._file, self._id, at_start=self._at_start, restored=restored
                    )
                if report.problems:
                    return self._contradicted(report)
                if self._newest is None:
                    return self._sign_anew(
                        "restored" if restored else "first", events, counter, None, closed=closed
                    )
                if events > self._newest.events or closed or opening:
                    self._sign_next(report, counter, closed=closed, note="restored" if restored else "")
                return self._contradicted(report) if report.problems else report
            except BaseException:
                self._root = None  # memory may be ahead of the file
                raise
            finally:
                self._db.execute("COMMIT")

    def _contradicted(self, report: AnchorReport) -> AnchorReport:
        """Keeps what was found: more events come, and hide it from a comparison of totals."""
        self._file.mark_contradicted(report.problems[0])
        return report

    def _read(self, report: AnchorReport, *, restored: bool) -> None:
        """Reads the newest anchor and the hashes of what it covers."""
        with self._file.snapshot():
            self._newest = _trusted(self._file.newest(), self._key.public, report)
            if restored and self._newest is None:  # of the key that this machine had before
                report.problems.clear()
            hashes = [bucket_hash(octets) for octets in self._file.buckets()]
        anchor = self._newest
        if anchor is not None and root_of(anchor.threads, hashes).hex() != anchor.root:
            report.problems.append(f"{NAME} was changed: its threads are not those that were signed")
        self._root = EventRoot(hashes, self._file.bucket)
        self._root.threads = anchor.threads if anchor is not None else 0
        if report.problems:
            self._root = None

    def _sign_next(self, report: AnchorReport, counter: int, *, closed: bool, note: Note) -> None:
        assert self._newest is not None
        assert self._root is not None
        rows = self._db.execute(_TOUCHED, (self._newest.events,)).fetchall()
        for row in rows:
            old = self._root.entry(row[0])
            if old != ABSENT and (what := continues(self._db, row[0], old)):
                report.problems.append(f"thread {row[1]} {what}")
        if report.problems:
            self._root = None
            del report.problems[_LISTED:]
            return
        for row in rows:
            self._root.put(row[0], _entry(row))
        report.anchor = self._sign(self._root, report.events, counter, self._newest, closed, note)
        report.signed = True

    def _sign_anew(
        self, note: Note, events: int, counter: int, before: Anchor | None, *, closed: bool
    ) -> AnchorReport:
        root = EventRoot()
        for row in self._db.execute(_ALL):
            root.put(row[0], _entry(row))
        anchor = self._sign(root, events, counter, before, closed, note, anew=True)
        self._root = None  # read from the file next time
        return AnchorReport(anchor, events, signed=True)

    def _sign(
        self,
        root: EventRoot,
        events: int,
        counter: int,
        before: Anchor | None,
        closed: bool,
        note: Note,
        *,
        anew: bool = False,
    ) -> Anchor:
        self._sync()  # what is anchored must not be lost by a power cut that leaves the anchor
        changed = list(root.changed())
        anchor = sign_anchor(
            self._key,
            previous=before,
            counter=max(counter, self._file.last_counter) + 1,
            at=max(0, time.time_ns() // 1000),  # a clock without a battery may stand before 1970
            threads=root.threads,
            events=events,
            root=root.root(),
            closed=closed,
            note=note,
        )
        self._file.save(anchor, changed, self._id, anew=anew)
        root.forget()
        self._newest = anchor
        return anchor

    def _sync(self) -> None:
        try:
            self._wal.sync()
        except FileNotFoundError:  # all of it is in the database, which SQLite has synced
            return

    def _claimed_newest(self) -> Anchor | None:
        found = AnchorReport()
        anchor = _trusted(self._file.newest(), self._key.public, found)
        if found.problems:
            log.warning("security: accepted over an anchor that is not trusted: %s", found.problems[0])
        return anchor


def _trusted(body: dict[str, Any] | None, public: bytes, report: AnchorReport) -> Anchor | None:
    """The anchor in ``body``; a problem in the report when it is not signed by ``public``."""
    if body is None:
        return None
    try:
        return read_anchor(body, public)
    except BadAnchorError:
        report.problems.append(f"the newest anchor in {NAME} is not signed by this machine's key")
        return None


LOST = "rappd.db and anchors.db are gone together; this home was used before, and what was recorded is lost"
MADE_ANEW = "rappd.db is another file than the one that was anchored: what was recorded before is gone"


def made_anew(anchored: str, database: str | None) -> bool:
    """True when the database with the id ``database`` (None: not known) is not the one that the newest anchor is of."""
    return bool(anchored) and database is not None and anchored != database


def _compare_totals(
    report: AnchorReport,
    counter: int,
    file: AnchorFile,
    database: str,
    *,
    at_start: int | None,
    restored: bool,
) -> None:
    """``at_start``: number of events before the daemon appended any, None where it is not known."""
    anchor = report.anchor
    if before := file.contradicted:
        report.problems.append(before)
        return
    if counter > (anchor.counter if anchor else 0) and not restored:
        there = f"ends at anchor {anchor.counter}" if anchor else "is gone"
        report.problems.append(f"{NAME} {there}, and the database knows of anchor {counter}")
    if anchor is None:
        return
    if report.events < anchor.events:
        gone = anchor.events - report.events
        report.problems.append(
            f"the database is behind its anchor: {report.events} of {anchor.events} events are there,"
            f" {gone} are gone"
        )
    elif made_anew(file.database, database) and not restored:
        report.problems.append(MADE_ANEW)
    elif anchor.closed and at_start is not None and at_start > anchor.events and not restored:
        more = at_start - anchor.events
        report.problems.append(f"{more} events were put in while rappd was stopped")


def _entry(row: tuple[Any, ...]) -> bytes:
    _, id, _, _, _, _, count, head = row
    return entry(id, count, head, _names_at(row, count))


def _names_at(row: tuple[Any, ...], count: int) -> bytes:
    """The title and caller of a thread at its event ``count``: a title that came later is not there yet."""
    _, _, workspace, caller, title, late, _, _ = row
    return names_hash(workspace, caller, title if count > late else "")


def entries_at(
    db: sqlite3.Connection, ends: dict[int, tuple[int, bytes]], numbers: set[int]
) -> Iterator[tuple[int, bytes]]:
    """The entries of these threads when each ended with the event ``ends[number]``: (n, hash)."""
    waiting = sorted(numbers)
    for first in range(0, len(waiting), _AT_ONCE):
        some = orjson.dumps(waiting[first : first + _AT_ONCE]).decode()
        for row in db.execute(_SOME, (some,)).fetchall():
            count, head = ends[row[0]]
            if len(head) == len(GENESIS):
                yield row[0], entry(row[1], count, head, _names_at(row, count))
