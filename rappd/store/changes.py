"""What the writer carries out beside appending: changes of other tables, and envelopes taken once."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import groupby
from typing import Any, Literal, NamedTuple

import msgspec
import orjson
from msgspec.structs import replace

from rappd.store.records import Record, ThreadInfo
from rappd.store.together import Row as Row
from rappd.store.together import Together

InboxState = Literal["accepted", "started", "done"]

# A random key is a page of its own in each commit. So the inbox holds what is unfinished, and is small; what
# was answered is found by its answer in the record, on the thread that it was asked on.
_INTO = "INSERT INTO inbox(sender, id, verb, state, workspace, thread, body, at) SELECT"
_ANSWERED = """EXISTS (SELECT 1 FROM events AS answer
        WHERE answer.answers = 1 AND answer.recipient = it.column1 AND answer.id = it.column2
        AND EXISTS (SELECT 1 FROM events AS asked
            WHERE asked.thread = answer.thread AND asked.id = answer.id AND asked.verb = it.column3))"""
_IN_INBOX = """EXISTS (SELECT 1 FROM inbox
        WHERE sender = it.column1 AND id = it.column2 AND verb = it.column3)"""
_NEW = f"WHERE NOT {_ANSWERED} ON CONFLICT(sender, id, verb) DO NOTHING"
_TAKE = Together(f"{_INTO} * FROM (VALUES", 8, f") AS it {_NEW} RETURNING sender, id, verb")
_TAKE_ONE = f"{_INTO} ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8 {_NEW.replace('it.column', '?')}"
TAKEN = """SELECT state, thread FROM inbox WHERE sender = ?1 AND id = ?2 AND verb = ?3
    UNION ALL SELECT 'done', (SELECT id FROM threads WHERE number = answer.thread) FROM events AS answer
    WHERE answer.answers = 1 AND answer.recipient = ?1 AND answer.id = ?2
    AND EXISTS (SELECT 1 FROM events AS asked
        WHERE asked.thread = answer.thread AND asked.id = answer.id AND asked.verb = ?3)
    LIMIT 1"""
"""How far an envelope is, by who sent it, its id and its verb."""
_CAME_BEFORE = Together(
    "SELECT 1 FROM (VALUES",
    3,
    f") AS it WHERE {_IN_INBOX} OR {_ANSWERED} LIMIT 1",
    alone=TAKEN,
)
_BEGIN = """UPDATE inbox SET state = 'started'
    WHERE sender = ? AND id = ? AND verb = ? AND state = 'accepted'"""
_DONE = "DELETE FROM inbox WHERE sender = ? AND verb = ? AND id IN (SELECT value FROM json_each(?))"
_DONE_ONE = "DELETE FROM inbox WHERE sender = ? AND verb = ? AND id = ?"

Key = tuple[str, str, str]


class Change(msgspec.Struct):
    """One parameterised statement on the tables beside threads and events; for rooms of this package.

    Whoever waits gets the rows that it returns. ``then`` is carried out in the same transaction.
    """

    statement: str
    values: Row = ()
    then: Change | None = None


class Taking(msgspec.Struct, array_like=True, tag="taking"):
    """An envelope to be acted on once, named by who sent it, its id and its verb; and its records.

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


class Taken(NamedTuple):
    """How far an envelope is that came before, and the thread it went to."""

    state: InboxState
    thread: str


class Beginning(msgspec.Struct):
    """An accepted envelope is started; its records. Nothing is written when it is not ``accepted``."""

    sender: str
    id: str
    verb: str
    records: list[Record | ThreadInfo]


class Reply(msgspec.Struct, array_like=True, tag="reply"):
    """The recorded reply to an envelope that was taken, which is done by it."""

    record: Record
    sender: str
    id: str
    verb: str


Other = Change | Taking | Beginning | Reply
Item = Record | ThreadInfo | Other


Outcome = tuple[list[Record | ThreadInfo], Any]
"""What is to be appended with an entry, and the result for who waits."""


def carry_out(db: sqlite3.Connection, items: Sequence[Other]) -> list[Outcome]:
    """Inside the caller's transaction: all of them in their order, one outcome each."""
    outcomes: list[Outcome] = []
    done: dict[Key, str] = {}  # their answers are not yet in the record
    for kind, run in groupby(items, type):
        some: list[Any] = list(run)
        if kind is Taking:
            outcomes += _take(db, some, done)
        elif kind is Reply:
            done |= {(reply.sender, reply.id, reply.verb): reply.record.thread for reply in some}
            _done(db, some)
            outcomes += [([_answering(reply.record)], None) for reply in some]
        elif kind is Beginning:
            outcomes += [_begin(db, beginning) for beginning in some]
        else:
            outcomes += [([], _change(db, change)) for change in some]
    return outcomes


def came_before(db: sqlite3.Connection, keys: Sequence[Key]) -> bool:
    """Whether the tables have any of these envelopes."""
    return bool(_CAME_BEFORE.execute(db, keys))


def _take(db: sqlite3.Connection, takings: list[Taking], done: dict[Key, str]) -> list[Outcome]:
    rows = [
        (one.sender, one.id, one.verb, one.state, one.workspace, one.thread, bytearray(one.body), one.at)
        for one in takings
        if not done or (one.sender, one.id, one.verb) not in done
    ]
    if len(rows) == 1:
        new = {rows[0][:3]} if db.execute(_TAKE_ONE, rows[0]).rowcount else set()
    else:
        new = set(_TAKE.execute(db, rows))
    outcomes: list[Outcome] = []
    for one in takings:
        key = (one.sender, one.id, one.verb)
        if key in new:
            new.discard(key)  # a repeat in the same batch is a repeat
            outcomes.append((one.records, None))
        elif key in done:
            outcomes.append(([], Taken("done", done[key])))
        else:
            outcomes.append(([], Taken(*db.execute(TAKEN, key).fetchone())))
    return outcomes


def _done(db: sqlite3.Connection, replies: list[Reply]) -> None:
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


def _begin(db: sqlite3.Connection, beginning: Beginning) -> Outcome:
    began = db.execute(_BEGIN, (beginning.sender, beginning.id, beginning.verb)).rowcount > 0
    return (beginning.records if began else []), began


def threads_of(item: Item | None) -> list[str]:
    """Threads that an entry appends to."""
    if isinstance(item, Record):
        return [item.thread]
    if isinstance(item, Taking | Beginning):
        return [record.thread for record in item.records if isinstance(record, Record)]
    return [item.record.thread] if isinstance(item, Reply) else []


def bytes_of(item: Other) -> int:
    """About how many bytes it brings along."""
    if isinstance(item, Reply):
        return len(item.record.body)
    if isinstance(item, Change):
        return sum(len(value) for value in item.values if isinstance(value, bytes | str))
    size = len(item.body) if isinstance(item, Taking) else 0
    for record in item.records:
        if isinstance(record, Record):
            size += len(record.body)
    return size


def _change(db: sqlite3.Connection, change: Change) -> list[Row]:
    rows: list[Row] = db.execute(change.statement, change.values).fetchall()
    following = change.then
    while following is not None:
        db.execute(following.statement, following.values)
        following = following.then
    return rows
