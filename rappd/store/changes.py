"""What the writer carries out beside appending: changes of other tables, and envelopes taken once."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

from rappd.store.records import Record, ThreadInfo

InboxState = Literal["accepted", "started", "done"]

Row = tuple[Any, ...]

_TAKE = """INSERT INTO inbox(sender, id, verb, state, workspace, thread, body, at) VALUES(?,?,?,?,?,?,?,?)
    ON CONFLICT(sender, id, verb) DO NOTHING"""
_TAKEN = "SELECT state, thread FROM inbox WHERE sender = ? AND id = ? AND verb = ?"
_BEGIN = """UPDATE inbox SET state = 'started'
    WHERE sender = ? AND id = ? AND verb = ? AND state = 'accepted'"""
_DONE = "UPDATE inbox SET state = 'done', body = x'' WHERE sender = ? AND id = ? AND verb = ?"


@dataclass(slots=True)
class Change:
    """One parameterised statement on the tables beside threads and events; for rooms of this package.

    Whoever waits gets the rows that it returns. ``then`` is carried out in the same transaction.
    """

    statement: str
    values: Row = ()
    then: Change | None = None


@dataclass(slots=True)
class Taking:
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


@dataclass(slots=True)
class Beginning:
    """An accepted envelope is started; its records. Nothing is written when it is not ``accepted``."""

    sender: str
    id: str
    verb: str
    records: list[Record | ThreadInfo]


@dataclass(slots=True)
class Reply:
    """The recorded reply to an envelope that was taken, which is done by it."""

    record: Record
    sender: str
    id: str
    verb: str


Other = Change | Taking | Beginning | Reply
Item = Record | ThreadInfo | Other


def carry_out(db: sqlite3.Connection, item: Other) -> tuple[list[Record | ThreadInfo], Any]:
    """Inside the caller's transaction: what is to be appended with it, and the result for who waits."""
    if isinstance(item, Change):
        return [], _change(db, item)
    key = (item.sender, item.id, item.verb)
    if isinstance(item, Taking):
        row = (*key, item.state, item.workspace, item.thread, item.body, item.at)
        if db.execute(_TAKE, row).rowcount:
            return item.records, None
        return [], Taken(*db.execute(_TAKEN, key).fetchone())
    if isinstance(item, Beginning):
        began = db.execute(_BEGIN, key).rowcount > 0
        return (item.records if began else []), began
    db.execute(_DONE, key)
    return [replace(item.record, answers=True)], None


def threads_of(item: Item | None) -> list[str]:
    """Threads that an entry appends to."""
    if isinstance(item, Record):
        return [item.thread]
    if isinstance(item, Taking | Beginning):
        return [record.thread for record in item.records if isinstance(record, Record)]
    return [item.record.thread] if isinstance(item, Reply) else []


def bytes_of(item: Item) -> int:
    """About how many bytes it brings along."""
    if isinstance(item, Record):
        return len(item.body)
    if isinstance(item, ThreadInfo):
        return 0
    if isinstance(item, Change):
        return sum(len(value) for value in item.values if isinstance(value, bytes | str))
    if isinstance(item, Reply):
        return bytes_of(item.record)
    return (len(item.body) if isinstance(item, Taking) else 0) + sum(map(bytes_of, item.records))


def _change(db: sqlite3.Connection, change: Change) -> list[Row]:
    rows: list[Row] = db.execute(change.statement, change.values).fetchall()
    following = change.then
    while following is not None:
        db.execute(following.statement, following.values)
        following = following.then
    return rows
