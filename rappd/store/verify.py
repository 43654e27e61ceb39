"""Checks every recorded event against its thread's hash chain, and all of them against signed anchors."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from envelopes.codecs.emergence import GENESIS, link
from envelopes.envelope import PARENT, THREAD_PATH, thread_id, thread_id_below
from rappd.store import schema
from rappd.store.anchor_comparison import Anchored, AnchorProof
from rappd.store.connections import in_words, is_damage, open_reading

CHUNK = 20_000
LISTED = 1_000
"""The most problems in a report; all are counted."""

Progress = Callable[[int, int], None]

# The last column is how the encoded envelope begins, unless a name needs escapes or the spacing is
# another: comparing that takes a third of the time of reading the JSON.
_ROWS = """SELECT seq, thread, n, at, body, prev, hash, CAST('{"id":"' || id || '","from":"' || sender
    || '","to":"' || recipient || '","verb":"' || verb || '",' AS BLOB),
    CASE WHEN parent IS NULL THEN NULL ELSE CAST('"_x_parent":"' || parent || '"' AS BLOB) END
    FROM events WHERE seq > ? AND seq <= ? ORDER BY seq LIMIT ?"""
_WHOLE = (1 << 63) - 1
_PATH = b'"_x_thread_path":'
_PLACES = """SELECT child.number, child.id, child.workspace, child.caller, child.session, child.parent, child.path,
    above.path, EXISTS (SELECT 1 FROM threads AS root WHERE root.parent IS NULL
        AND (substr(root.id, 25), root.id) = (substr(child.begins, 25), child.begins))
    FROM (SELECT *, CASE WHEN json_valid(path) THEN path ->> '$[0]' END AS begins FROM threads) AS child LEFT JOIN threads AS above
    ON (substr(above.id, 25), above.id) = (substr(child.parent, 25), child.parent)
    WHERE child.parent IS NOT NULL OR child.path IS NOT NULL
    OR child.number IN (SELECT value FROM json_each(?))"""
_ANY_PARENT = b'"_x_parent":'


class Finding(NamedTuple):
    """A problem at the ``n``-th event of ``thread``; ``n`` 0: the thread, thread "": the file."""

    thread: str
    n: int
    what: str

    def __str__(self) -> str:
        where = f"thread {self.thread}" if self.thread else "the record"
        return f"{where}, event {self.n}: {self.what}" if self.n else f"{where}: {self.what}"


@dataclass(slots=True)
class VerifyReport:
    """The result of a verification; ``found`` counts beyond the ``LISTED`` problems."""

    events: int = 0
    threads: int = 0
    seconds: float = 0.0
    found: int = 0
    problems: list[Finding] = field(default_factory=list)
    anchored: Anchored | None = None
    """The comparison with its anchors; None where these were not looked at."""

    @property
    def whole(self) -> bool:
        """Nothing is wrong."""
        return self.found == 0

    def as_json(self) -> dict[str, Any]:
        """The report as ``--json`` prints it."""
        return {
            "events": self.events,
            "threads": self.threads,
            "seconds": round(self.seconds, 3),
            "found": self.found,
            "problems": [finding._asdict() for finding in self.problems],
            "anchor": self.anchored.as_json() if self.anchored else None,
        }


def verify(path: Path, progress: Progress | None = None, proof: AnchorProof | None = None) -> VerifyReport:
    """Reads the whole store, also while the daemon writes to it. ``progress`` gets (checked, of about).

    Finds events that were changed, removed, put in or moved, and threads whose count or head is not
    their last event's. Whether someone recomputed a chain to its end, thread row included, is only known
    with a ``proof``: the anchors that were signed.
    What is damaged is reported, and all that can be read besides it is checked. ``StoreError`` for other
    reasons why the file cannot be read.
    """
    started = time.perf_counter()
    check = _Check(proof)
    db = _open(path, check)
    try:
        with in_words(path):
            check.run(db, progress)
    finally:
        db.close()
    if proof is not None:
        check.report.anchored = proof.result(check.report.events)
        for thread, what in proof.problems:
            check.report.found += 1
            check.report.problems.append(Finding(thread, 0, what))
    check.report.seconds = time.perf_counter() - started
    return check.report


def _open(path: Path, check: _Check) -> sqlite3.Connection:
    """The database; an empty one, with a problem noted, for a file that is too damaged to be opened."""
    with in_words(path):
        try:
            return open_reading(path)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            check.note(0, 0, f"{path.name} cannot be opened: {error}")
    db = sqlite3.connect(":memory:", isolation_level=None)
    schema.bring_up_to_date(db)
    db.execute("DELETE FROM database_id")  # it is not known which file this was
    return db


class _Columns(msgspec.Struct, rename={"sender": "from", "recipient": "to", "parent": PARENT}):
    """The fields of an envelope that the searchable columns repeat."""

    id: str
    sender: str
    recipient: str
    verb: str
    parent: str | None = None


class _ThreadPath(msgspec.Struct, rename={"path": THREAD_PATH}):
    path: list[str] = []


_read_path = msgspec.json.Decoder(_ThreadPath).decode
_read_names = msgspec.json.Decoder(list[str]).decode
_read_columns = msgspec.json.Decoder(_Columns).decode


class _Check:
    """One pass in order of ``seq``, in short reads that never hold up the writer's checkpoints."""

    def __init__(self, proof: AnchorProof | None) -> None:
        self.report = VerifyReport()
        self._proof = proof
        self.seq = 0
        self._ends: dict[int, tuple[int, bytes]] = {}  # thread number -> its last n and hash so far
        self._found: list[tuple[int, int, str]] = []
        self._paths: dict[int, list[str]] = {}  # as the first event of a thread says it
        self._gaps = 0  # missing seq
        self._missing = 0  # missing n, told already

    def run(self, db: sqlite3.Connection, progress: Progress | None) -> None:
        try:
            self._run(db, progress)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            self.note(0, 0, f"the list of threads cannot be read: {error}")
        self.name_threads(db)
        if progress:
            progress(self.report.events, self.report.events)

    def _run(self, db: sqlite3.Connection, progress: Progress | None) -> None:
        total = _last_seq(db)
        for events in self._proof.stops(total) if self._proof else ():
            while self._chunk(db, events) == CHUNK:
                if progress:
                    progress(self.report.events, max(total, self.report.events))
            assert self._proof is not None
            self._proof.compare(db, events, self._ends)
        while self._chunk(db) == CHUNK:
            if progress:
                progress(self.report.events, max(total, self.report.events))
        # What came meanwhile and the threads' rows belong together: one moment for both.
        db.execute("BEGIN")
        while self._chunk(db) == CHUNK:
            pass
        if self._proof is not None:
            self._proof.finish(db, self.seq)
        self._threads(db)

    def note(self, number: int, n: int, what: str) -> None:
        self.report.found += 1
        if len(self._found) < LISTED:
            self._found.append((number, n, what))

    def name_threads(self, db: sqlite3.Connection) -> None:
        """Fills the report's problems; in the tables, threads are numbers."""
        for number, n, what in self._found:
            try:
                row = db.execute("SELECT id FROM threads WHERE number = ?", (number,)).fetchone()
            except sqlite3.DatabaseError:  # the damage has been noted already
                row = None
            name = row[0] if row else f"number {number}" if number else ""
            self.report.problems.append(Finding(name, n, what))

    def _chunk(self, db: sqlite3.Connection, last_seq: int = _WHOLE) -> int:
        """Checks up to ``CHUNK`` events and returns their number, ``CHUNK`` also where some cannot be read."""
        try:
            return self._rows(db, last_seq)
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
            return CHUNK if self._skip(db, error) else 0

    def _skip(self, db: sqlite3.Connection, error: sqlite3.DatabaseError) -> bool:
        """Notes the events after the last one that cannot be read, and goes on to the next; False when there is none."""
        first = bad = self.seq + 1
        good = first + 1
        while not _readable(db, good):
            bad, good = good, good + 2 * (good - first)
            if good > _WHOLE:
                break
        while good <= _WHOLE and good - bad > 1:
            middle = (bad + good) // 2
            bad, good = (bad, middle) if _readable(db, middle) else (middle, good)
        following = "SELECT seq FROM events WHERE seq >= ? ORDER BY seq LIMIT 1"
        row = db.execute(following, (good,)).fetchone() if good <= _WHOLE else None
        if row is None:
            self.note(0, 0, f"event {first} of the log cannot be read, nor any after it: {error}")
            return False
        many = f"events {first} to {row[0] - 1}" if row[0] - 1 > first else f"event {first}"
        self.note(0, 0, f"{many} of the log cannot be read: {error}")
        self.seq = row[0] - 1
        return True

    def _rows(self, db: sqlite3.Connection, last_seq: int) -> int:
        ends = self._ends
        touched = self._proof.touched if self._proof is not None else set()
        nothing = (0, GENESIS)
        before = self.report.events
        rows = db.execute(_ROWS, (self.seq, last_seq, CHUNK))
        for seq, thread, n, at, body, prev, digest, start, parent in rows:
            self.report.events += 1
            touched.add(thread)
            if seq != self.seq + 1:
                self._gaps += seq - self.seq - 1
            self.seq = seq
            last, end = ends.get(thread, nothing)
            if n > last:  # one that stands too late leaves the chain where it is
                ends[thread] = (n, digest)
            if n == 1 and _PATH in body:
                self._paths[thread] = _path_in(body)
            if n != last + 1:
                self._out_of_step(thread, n, last)
            elif prev != end:
                self.note(thread, n, "it does not follow the event before it")
            try:
                intact = link(prev, at, body) == digest
            except (TypeError, ValueError):
                intact = False
            if not intact:
                self.note(thread, n, "its text, time or hash was changed")
            elif _differ(body, start, parent) and self._contradicted(db, seq, body):
                self.note(thread, n, "its columns differ from its envelope")
        return self.report.events - before

    def _contradicted(self, db: sqlite3.Connection, seq: int, body: bytes) -> bool:
        try:
            written = _read_columns(body)
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return False  # not an envelope, so nothing that could contradict
        columns = db.execute(
            "SELECT id, sender, recipient, verb, parent FROM events WHERE seq = ?", (seq,)
        ).fetchone()
        return bool(columns != (written.id, written.sender, written.recipient, written.verb, written.parent))

    def _out_of_step(self, thread: int, n: int, last: int) -> None:
        if n > last + 1:
            self._missing += n - last - 1
            what = f"event {last + 1} is" if n == last + 2 else f"events {last + 1} to {n - 1} are"
            self.note(thread, n, f"{what} missing before it")
        else:
            self.note(thread, n, f"it stands after event {last}")

    def _threads(self, db: sqlite3.Connection) -> None:
        for number, count, head in db.execute("SELECT number, count, head FROM threads ORDER BY number"):
            self.report.threads += 1
            last, end = self._ends.pop(number, (0, GENESIS))
            if count > last:
                self._missing += count - last
                self.note(number, 0, f"it should have {count} events and ends with {last}")
            elif count < last:
                self.note(number, 0, f"it should have {count} events and has {last}")
            elif head != end:
                self.note(number, 0, "its head is not the hash of its last event")
        self._trees(db)
        for number, (last, _) in self._ends.items():
            self.note(number, 0, f"the thread of {last} events is not listed")
        if self._gaps > self._missing:
            self.note(0, 0, f"{self._gaps - self._missing} events are gone with all of their thread")

    def _trees(self, db: sqlite3.Connection) -> None:
        """Checks where each thread that another one began hangs: its id follows from that, its first event says it."""
        for row in db.execute(_PLACES, (msgspec.json.encode(list(self._paths)).decode(),)):
            number, id, workspace, caller, session, parent, path, parents_path, root = row
            paths = self._paths.get(number, [])
            if parent is None:
                moved = path is not None or session is None or id != thread_id(workspace, caller, session)
                wrong = moved and (path is not None or bool(paths))
            else:
                names = _names(path)
                above = _names(parents_path) or [parent]
                wrong = (
                    len(names) < 2
                    or not root
                    or names[: len(above)] != above
                    or id != thread_id_below(names[0], names[1:])
                    or (number in self._paths and paths[1:] != names[1:])
                )
            if wrong:
                self.note(number, 0, "its place below another thread was changed")


def _differ(body: bytes, start: bytes, parent: bytes | None) -> bool:
    """True where the columns of an event may say other than its body: that has to be read, then."""
    if not body.startswith(start):
        return True
    return _ANY_PARENT in body if parent is None else parent not in body


def _path_in(body: bytes) -> list[str]:
    try:
        return _read_path(body).path
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return []


def _names(path: str | None) -> list[str]:
    try:
        return _read_names(path) if path else []
    except msgspec.MsgspecError:
        return []


def _readable(db: sqlite3.Connection, seq: int) -> bool:
    """True when the first event from ``seq`` on can be read, or there is none."""
    try:
        db.execute(_ROWS, (seq - 1, _WHOLE, 1)).fetchone()
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return False
    return True


def _last_seq(db: sqlite3.Connection) -> int:
    """The number of the last event; 0 for none, or when the page that it is on cannot be read."""
    try:
        return int(db.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])
    except sqlite3.DatabaseError as error:
        if not is_damage(error):
            raise
        return 0
