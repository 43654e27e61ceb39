"""Operations of the writer beside appending: statements on other tables, and the inbox, which claims an envelope once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain, groupby
from typing import Any, Literal, NamedTuple

import msgspec
import orjson
from msgspec.structs import replace

from rappd.store.records import Record, ThreadInfo

InboxState = Literal["accepted", "started", "done"]

Row = tuple[Any, ...]

MOST = 32
"""The most rows in one statement; each number of rows is a statement of its own, which SQLite keeps prepared."""


class MultiRowStatement:
    """``begin`` + ``(?,?),(?,?)…`` + ``end``, each row of so many ``columns``; ``alone`` does the same for one."""

    def __init__(self, begin: str, columns: int, end: str = "", *, alone: str | None = None) -> None:
        row = f"({','.join('?' * columns)})"
        self._statements = [f"{begin} {','.join([row] * rows)} {end}" for rows in range(MOST + 1)]
        if alone is not None:
            self._statements[1] = alone

    def execute(self, db: sqlite3.Connection, rows: Sequence[Sequence[object]]) -> list[Row]:
        """Executes it for all rows in order and returns the resulting rows."""
        if len(rows) == 1:
            return db.execute(self._statements[1], rows[0]).fetchall()
        found: list[Row] = []
        for first in range(0, len(rows), MOST):
            some = rows[first : first + MOST]
            values = list(chain.from_iterable(some))
            found += db.execute(self._statements[len(some)], values).fetchall()
        return found


# A random key is a page of its own in each commit. So the inbox holds what is unfinished, and is small; what
# was answered is found by its answer in the event log, on the thread that it was asked on.
_INTO = "INSERT INTO inbox(sender, id, verb, state, workspace, thread, body, at) SELECT"
_ANSWERED = """EXISTS (SELECT 1 FROM events AS answer
        WHERE answer.answers = 1 AND answer.recipient = it.column1 AND answer.id = it.column2
        AND EXISTS (SELECT 1 FROM events AS asked
            WHERE asked.thread = answer.thread AND asked.id = answer.id AND asked.verb = it.column3))"""
_NEW = f"WHERE NOT {_ANSWERED} ON CONFLICT(sender, id, verb) DO NOTHING"
_CLAIM = MultiRowStatement(f"{_INTO} * FROM (VALUES", 8, f") AS it {_NEW} RETURNING sender, id, verb")
_CLAIM_ONE = f"{_INTO} ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 {_NEW.replace('it.column', '?')}"
CLAIM_STATE = """SELECT state, thread FROM inbox WHERE sender = ?1 AND id = ?2 AND verb = ?3
    UNION ALL SELECT 'done', (SELECT id FROM threads WHERE number = answer.thread) FROM events AS answer
    WHERE answer.answers = 1 AND answer.recipient = ?1 AND answer.id = ?2
    AND EXISTS (SELECT 1 FROM events AS asked
        WHERE asked.thread = answer.thread AND asked.id = answer.id AND asked.verb = ?3)
    LIMIT 1"""
"""Selects the state of an envelope by its sender, id and verb."""
_START = """UPDATE inbox SET state = 'started', thread = ?4
    WHERE sender = ?1 AND id = ?2 AND verb = ?3 AND state = 'accepted'"""
_DONE = "DELETE FROM inbox WHERE sender = ? AND verb = ? AND id IN (SELECT value FROM json_each(?))"
_DONE_ONE = "DELETE FROM inbox WHERE sender = ? AND verb = ? AND id = ?"

Key = tuple[str, str, str]


class SqlStatement(msgspec.Struct):
    """One parameterised statement on tables other than threads and events, for modules of this package.

    The waiter gets the rows that it returns. ``then`` is executed in the same transaction.
    """

    statement: str
    values: Row = ()
    then: SqlStatement | None = None


OF_TIMER = "timer"
"""The workspace of claims of this machine's own timers, which repeat them: no other machine is answered."""


class InboxClaim(msgspec.Struct):
    """Claims an envelope, named by its sender, id and verb, together with its records.

    ``body`` is kept until it is done: for what is begun later, or may be begun again.
    """

    sender: str
    id: str
    verb: str
    state: InboxState
    workspace: str
    thread: str
    body: bytes
    at: int
    records: list[Record | ThreadInfo]


class ClaimState(NamedTuple):
    """The state of an envelope that was claimed before, and its thread."""

    state: InboxState
    thread: str


class InboxStart(msgspec.Struct):
    """Starts an accepted envelope and appends its records. Writes nothing when it is not ``accepted``.

    Its thread is that of its first record from then on: its answer belongs there.
    """

    sender: str
    id: str
    verb: str
    records: list[Record | ThreadInfo]


class InboxReply(msgspec.Struct):
    """Appends the reply to a claimed envelope, which is done with it."""

    record: Record
    sender: str
    id: str
    verb: str


Other = SqlStatement | InboxClaim | InboxStart | InboxReply
Item = Record | ThreadInfo | Other


Outcome = tuple[list[Record | ThreadInfo], Any]
"""Records to append with an entry, and the waiter's result."""


def execute(db: sqlite3.Connection, items: Sequence[Other]) -> list[Outcome]:
    """Executes items in order inside the caller's transaction; one outcome each."""
    outcomes: list[Outcome] = []
    done: dict[Key, str] = {}  # their answers are not yet in the record
    for kind, run in groupby(items, type):
        some: list[Any] = list(run)
        if kind is InboxClaim:
            outcomes += _claim(db, some, done)
        elif kind is InboxReply:
            done |= {(reply.sender, reply.id, reply.verb): reply.record.thread for reply in some}
            _done(db, some)
            outcomes += [([_answering(reply.record)], None) for reply in some]
        elif kind is InboxStart:
            outcomes += [_start(db, start) for start in some]
        else:
            outcomes += [([], _run_statement(db, change)) for change in some]
    return outcomes


def _claim(db: sqlite3.Connection, claims: list[InboxClaim], done: dict[Key, str]) -> list[Outcome]:
    rows = [
        (one.sender, one.id, one.verb, one.state, one.workspace, one.thread, bytearray(one.body), one.at)
        for one in claims
        if not done or (one.sender, one.id, one.verb) not in done
    ]
    if len(rows) == 1:
        new = {rows[0][:3]} if db.execute(_CLAIM_ONE, rows[0]).rowcount else set()
    else:
        new = set(_CLAIM.execute(db, rows))
    outcomes: list[Outcome] = []
    for one in claims:
        key = (one.sender, one.id, one.verb)
        if key in new:
            new.discard(key)  # a repeat in the same batch is a repeat
            outcomes.append((one.records, None))
        elif key in done:
            outcomes.append(([], ClaimState("done", done[key])))
        else:
            outcomes.append(([], ClaimState(*db.execute(CLAIM_STATE, key).fetchone())))
    return outcomes


def _done(db: sqlite3.Connection, replies: list[InboxReply]) -> None:
    of: dict[tuple[str, str], list[str]] = {}
    for reply in replies:
        of.setdefault((reply.sender, reply.verb), []).append(reply.id)
    for key, ids in of.items():
        if len(ids) == 1:
            db.execute(_DONE_ONE, (*key, *ids))
        else:
            db.execute(_DONE, (*key, orjson.dumps(ids).decode()))


def _answering(record: Record) -> Record:
    return record if record.answers else replace(record, answers=True)


def _start(db: sqlite3.Connection, start: InboxStart) -> Outcome:
    thread = next(iter(threads_of(start)), "")
    began = db.execute(_START, (start.sender, start.id, start.verb, thread)).rowcount > 0
    return (start.records if began else []), began


def threads_of(item: Item | None) -> list[str]:
    """Returns the threads that an entry appends to."""
    if isinstance(item, Record):
        return [item.thread]
    if isinstance(item, InboxClaim | InboxStart):
        return [record.thread for record in item.records if isinstance(record, Record)]
    return [item.record.thread] if isinstance(item, InboxReply) else []


def bytes_of(item: Other) -> int:
    """Estimates the bytes of an item."""
    if isinstance(item, InboxReply):
        return len(item.record.body)
    if isinstance(item, SqlStatement):
        return sum(len(value) for value in item.values if isinstance(value, bytes | str))
    size = len(item.body) if isinstance(item, InboxClaim) else 0
    for record in item.records:
        if isinstance(record, Record):
            size += len(record.body)
    return size


def _run_statement(db: sqlite3.Connection, change: SqlStatement) -> list[Row]:
    rows: list[Row] = db.execute(change.statement, change.values).fetchall()
    following = change.then
    while following is not None:
        db.execute(following.statement, following.values)
        following = following.then
    return rows
