"""Edits of an event log that leave every hash chain, count and number consistent, as a thief of the account makes them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from envelopes.codecs.hash_chain import GENESIS, link


def drop_thread(db: sqlite3.Connection) -> None:
    """Removes the first thread; the others move up, and so do all events."""
    db.execute("DELETE FROM events WHERE thread = 1")
    db.execute("DELETE FROM threads WHERE number = 1")
    _renumber(db)


def cut_tail(db: sqlite3.Connection) -> None:
    """Removes the last two events of the store."""
    for _ in range(2):
        seq, thread, n, prev = db.execute(
            "SELECT seq, thread, n, prev FROM events ORDER BY seq DESC LIMIT 1"
        ).fetchone()
        db.execute("DELETE FROM events WHERE seq = ?", (seq,))
        db.execute("UPDATE threads SET count = ?, head = ? WHERE number = ?", (n - 1, prev, thread))


def rewrite_chain(db: sqlite3.Connection) -> None:
    """Changes the first event of the first thread and hashes all that follow anew."""
    changed = "CAST(replace(body, 'first', 'worst') AS BLOB)"
    db.execute(f"UPDATE events SET body = {changed} WHERE thread = 1 AND n = 1")
    rehash(db, 1)


def invent_event(db: sqlite3.Connection) -> None:
    """Appends an event to the first thread."""
    db.execute(
        "INSERT INTO events SELECT (SELECT max(seq) + 1 FROM events), thread, n + 1, at + 1, verb, sender, recipient,"
        " id, body, 0, prev, hash FROM events WHERE thread = 1 ORDER BY n DESC LIMIT 1"
    )
    db.execute("UPDATE threads SET count = count + 1 WHERE number = 1")
    rehash(db, 1)


def change_caller(db: sqlite3.Connection) -> None:
    """Says that somebody else began the first thread."""
    db.execute("UPDATE threads SET caller = 'mallory' WHERE number = 1")


def change_title(db: sqlite3.Connection) -> None:
    """Gives the first thread another title."""
    db.execute("UPDATE threads SET title = 'nothing of note' WHERE number = 1")


def move_thread(db: sqlite3.Connection) -> None:
    """Says that the first thread was had with another workspace."""
    db.execute("UPDATE threads SET workspace = 'rose' WHERE number = 1")


FORGERIES = {
    "drop_thread": (drop_thread, "is gone; it had"),
    "cut_tail": (cut_tail, "are gone from the end"),
    "rewrite_chain": (rewrite_chain, "are not those that were signed"),
    "invent_event": (invent_event, "put in while rappd was stopped"),
    "change_caller": (change_caller, "caller, title or workspace"),
    "change_title": (change_title, "caller, title or workspace"),
    "move_thread": (move_thread, "caller, title or workspace"),
}
"""What is done, and what ``verify`` says of it."""


def forge(database: Path, how: Callable[[sqlite3.Connection], None]) -> None:
    """Applies an edit to the database of a stopped daemon and puts its triggers back."""
    with closing(sqlite3.connect(database, isolation_level=None)) as db:
        guards = db.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        db.execute("BEGIN IMMEDIATE")
        for name, _ in guards:
            db.execute(f"DROP TRIGGER {name}")
        how(db)
        for _, sql in guards:
            db.execute(sql)
        db.execute("COMMIT")


def rehash(db: sqlite3.Connection, thread: int) -> None:
    """Computes the chain of a thread anew, its row included."""
    previous, count = GENESIS, 0
    for seq, at, body in db.execute(
        "SELECT seq, at, body FROM events WHERE thread = ? ORDER BY n", (thread,)
    ).fetchall():
        digest = link(previous, at, body)
        db.execute("UPDATE events SET prev = ?, hash = ? WHERE seq = ?", (previous, digest, seq))
        previous, count = digest, count + 1
    db.execute("UPDATE threads SET count = ?, head = ? WHERE number = ?", (count, previous, thread))


def _renumber(db: sqlite3.Connection) -> None:
    for new, (old,) in enumerate(db.execute("SELECT seq FROM events ORDER BY seq").fetchall(), start=1):
        db.execute("UPDATE events SET seq = ? WHERE seq = ?", (new, old))
    for new, (old,) in enumerate(
        db.execute("SELECT number FROM threads ORDER BY number").fetchall(), start=1
    ):
        db.execute("UPDATE threads SET number = ? WHERE number = ?", (new, old))
        db.execute("UPDATE events SET thread = ? WHERE thread = ?", (new, old))
