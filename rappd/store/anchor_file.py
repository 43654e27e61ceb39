"""``anchors.db``: the signed anchors of this event log, the threads that they cover, and peers' anchors kept as witness.

A file beside the database, 0600 and out of every worker's reach. Each anchor and the entries that it covers are
one transaction that is on the disk before the anchor counts.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from envelopes.identity.anchor import Anchor
from rappd.store.connections import ANCHORS, BUSY_MS, connect_reading, in_words

NAME = ANCHORS
KEPT = 32
"""Anchors of this event log that are kept; those with a note stay longer."""

_APPLICATION_ID = 0x52414E43  # "RANC", for file(1)
_TABLES = (
    "CREATE TABLE anchors(counter INTEGER PRIMARY KEY, note TEXT NOT NULL, body BLOB NOT NULL) STRICT",
    "CREATE TABLE buckets(number INTEGER PRIMARY KEY, entries BLOB NOT NULL) STRICT",
    "CREATE TABLE marks(name TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT",
    """CREATE TABLE witnessed(
        number INTEGER PRIMARY KEY,
        node TEXT NOT NULL,
        counter INTEGER NOT NULL,
        received INTEGER NOT NULL,
        fault TEXT NOT NULL,
        body BLOB NOT NULL
    ) STRICT""",
)


_REVOKED = """CREATE TABLE IF NOT EXISTS revoked(
    kind TEXT NOT NULL, id TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY(kind, id)) STRICT, WITHOUT ROWID"""


class Revoked(NamedTuple):
    """Trust that was ended: a peer by its fingerprint, or a token by its ``jti``; ``at`` in microseconds."""

    kind: str
    id: str
    at: int


Note = Callable[[Revoked], Awaitable[None]]
"""Writes one revocation down outside of the database."""


class Witnessed(NamedTuple):
    """A peer's anchor as it was kept here. ``fault``: how it contradicts those before it, "" when it does not."""

    number: int
    node: str
    counter: int
    received: int
    fault: str
    body: dict[str, Any]


class AnchorFile:
    """One process writes; any number may read. Every method raises ``StoreError`` when the file is of no use."""

    def __init__(self, path: Path, *, writing: bool = False, traceless: bool = False) -> None:
        """A missing file reads as an empty one; ``writing`` creates it.

        ``traceless``: for one short look, which makes no file beside it.
        """
        self.path = path
        with in_words(path):
            self._db = _open(path, writing=writing, traceless=traceless)

    def __enter__(self) -> AnchorFile:
        return self

    def __exit__(self, *of: object) -> None:
        self.close()

    def close(self) -> None:
        """Releases the file."""
        self._db.close()

    def anchors(self) -> list[dict[str, Any]]:
        """The anchors that are kept, oldest first, as JSON objects. Nothing about them is checked."""
        return [_object(body) for (body,) in self._rows("SELECT body FROM anchors ORDER BY counter")]

    def newest(self) -> dict[str, Any] | None:
        """The anchor with the highest counter."""
        rows = self._rows("SELECT body FROM anchors ORDER BY counter DESC LIMIT 1")
        return _object(rows[0][0]) if rows else None

    @property
    def last_counter(self) -> int:
        """The highest counter, of any signer."""
        return int(self._rows("SELECT coalesce(max(counter), 0) FROM anchors")[0][0])

    def buckets(self) -> Iterator[bytes]:
        """Every bucket of entries, in order."""
        with in_words(self.path):
            for (octets,) in self._db.execute("SELECT entries FROM buckets ORDER BY number"):
                yield octets

    def bucket(self, number: int) -> bytes:
        """One bucket of entries, b"" when it is not there."""
        rows = self._rows("SELECT entries FROM buckets WHERE number = ?", (number,))
        return bytes(rows[0][0]) if rows else b""

    def save(
        self, anchor: Anchor, buckets: Iterable[tuple[int, bytes]], database: str, *, anew: bool = False
    ) -> None:
        """Adds an anchor of the database with that id, with the buckets that changed; on the disk afterwards.

        ``anew`` replaces all buckets.
        """
        with self._transaction():
            if anew:
                self._db.execute("DELETE FROM buckets")
            self._db.executemany("INSERT OR REPLACE INTO buckets VALUES(?, ?)", buckets)
            self._db.execute(
                "INSERT INTO anchors VALUES(?, ?, ?)",
                (anchor.counter, anchor.note, orjson.dumps(anchor.to_json())),
            )
            for which in ("note = ''", "note != ''"):
                self._db.execute(
                    f"DELETE FROM anchors WHERE {which} AND counter NOT IN"  # noqa: S608 - constants
                    f" (SELECT counter FROM anchors WHERE {which} ORDER BY counter DESC LIMIT {KEPT})"
                )
            self._db.execute("DELETE FROM marks")
            self._db.execute("INSERT INTO marks VALUES('database', ?)", (database,))

    def mark_restored(self, backup: str) -> None:
        """Notes that this home came from a backup made at ``backup``; the next anchor says so."""
        self._mark("restored", backup)

    def mark_contradicted(self, what: str) -> None:
        """Notes how the event log contradicted the newest anchor when that was first seen."""
        if not self.contradicted:
            self._mark("contradicted", what)

    @property
    def restored(self) -> bool:
        """The home came from a backup and no anchor was signed since."""
        return bool(self._marked("restored"))

    @property
    def contradicted(self) -> str:
        """The contradiction between event log and newest anchor when that was first seen, "" when it does not."""
        return self._marked("contradicted")

    @property
    def database(self) -> str:
        """The id of the database that the newest anchor is of, "" when it was signed before databases had one."""
        return self._marked("database")

    def witnessed(self, node: str = "") -> list[Witnessed]:
        """Peers' anchors, of one node or of all, in the order in which they came."""
        where, values = ("WHERE node = ?", (node,)) if node else ("", ())
        rows = self._rows(
            f"SELECT number, node, counter, received, fault, body FROM witnessed {where} ORDER BY number",  # noqa: S608
            values,
        )
        return [Witnessed(a, b, c, d, e, _object(body)) for a, b, c, d, e, body in rows]

    def keep_witnessed(self, one: Witnessed, drop: Iterable[int] = ()) -> int:
        """Adds a peer's anchor and drops those with these numbers. Returns its own number."""
        with self._transaction():
            self._db.executemany("DELETE FROM witnessed WHERE number = ?", [(number,) for number in drop])
            made = self._db.execute(
                "INSERT INTO witnessed(node, counter, received, fault, body) VALUES(?, ?, ?, ?, ?)",
                (one.node, one.counter, one.received, one.fault, orjson.dumps(one.body)),
            ).lastrowid
        assert made is not None
        return made

    def forget_witnessed(self, node: str) -> int:
        """Drops every anchor of a node. Returns how many there were."""
        with self._transaction():
            return self._db.execute("DELETE FROM witnessed WHERE node = ?", (node,)).rowcount

    def revoked(self) -> list[Revoked]:
        """Every revocation that was added."""
        return [Revoked(*row) for row in self._rows("SELECT kind, id, at FROM revoked")]

    def add_revoked(self, revoked: Iterable[Revoked]) -> None:
        """Adds revocations; of two of the same, the later one stays. On the disk afterwards."""
        with self._transaction():
            self._db.executemany(
                "INSERT INTO revoked VALUES(?, ?, ?) ON CONFLICT DO UPDATE SET at = max(at, excluded.at)",
                revoked,
            )

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """All reads inside see one moment."""
        with in_words(self.path):
            self._db.execute("BEGIN")
        try:
            yield
        finally:
            with contextlib.suppress(sqlite3.Error):
                self._db.execute("COMMIT")

    def _mark(self, name: str, value: str) -> None:
        with self._transaction():
            self._db.execute("INSERT OR REPLACE INTO marks VALUES(?, ?)", (name, value))

    def _marked(self, name: str) -> str:
        rows = self._rows("SELECT value FROM marks WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else ""

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with in_words(self.path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                with contextlib.suppress(sqlite3.Error):
                    self._db.execute("ROLLBACK")
                raise

    def _rows(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        with in_words(self.path):
            return self._db.execute(statement, values).fetchall()


def _open(path: Path, *, writing: bool, traceless: bool) -> sqlite3.Connection:
    if writing:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        path.chmod(0o600)
    if not writing:
        if path.exists():
            alone = traceless and not path.with_name(f"{path.name}-wal").exists()
            db, is_made = connect_reading(path, _has_tables, immutable=alone)
            if is_made:
                return db
            db.close()
        db = _connected(":memory:")
        _create(db)
        return db
    db = _connected(path.absolute().as_uri())
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = FULL")
        db.execute("PRAGMA fullfsync = ON")  # macOS: a sync that reaches the disk
        db.execute("PRAGMA trusted_schema = OFF")
        if not _has_tables(db):
            _create(db)
        db.execute(_REVOKED)  # also for a file of an earlier version
    except BaseException:
        db.close()
        raise
    return db


def _connected(where: str) -> sqlite3.Connection:
    return sqlite3.connect(
        where, uri=True, isolation_level=None, check_same_thread=False, timeout=BUSY_MS / 1000
    )


def _has_tables(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def _create(db: sqlite3.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    for statement in _TABLES:
        db.execute(statement)
    db.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
    db.execute("COMMIT")


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except (orjson.JSONDecodeError, TypeError):
        return {}
    return found if isinstance(found, dict) else {}
