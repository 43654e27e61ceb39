"""The table of scheduled work (``rappd.sessions.schedule.timers``)."""

from __future__ import annotations

import sqlite3
from typing import Any

import msgspec
import orjson

from rappd.store.store import Store
from rappd.store.write_operations import SqlStatement

_SET = """INSERT INTO timers(id, kind, rule, zone, next, caller, detail, last, outcome, failed_since)
    VALUES(?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET kind = excluded.kind,
    rule = excluded.rule, zone = excluded.zone, next = excluded.next, caller = excluded.caller, detail = excluded.detail"""
_ALL = """SELECT id, kind, rule, zone, next, caller, detail, last, outcome, failed_since
    FROM timers ORDER BY next, id"""
_IS_THERE = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'timers'"
_END = "UPDATE timers SET next = ?, last = ?, outcome = ?, failed_since = ?, detail = ? WHERE id = ? AND next = ?"


class TimerRow(msgspec.Struct, frozen=True, kw_only=True):
    """Scheduled work. Moments are seconds since 1970, 0 for none. An empty ``rule`` runs once.

    ``caller`` is the one on whose behalf it runs; ``outcome`` is the last run's, "" when it was well.
    """

    id: str
    kind: str
    rule: str
    zone: str
    next: float
    caller: str
    detail: dict[str, Any] = {}
    last: float = 0.0
    outcome: str = ""
    failed_since: float = 0.0

    @property
    def paused(self) -> bool:
        """True where it does not run at its moments until it is resumed."""
        return bool(self.detail.get("paused"))


def timers_in(database: sqlite3.Connection) -> list[TimerRow]:
    """The same for a connection; none for a database of an older form."""
    if database.execute(_IS_THERE).fetchone() is None:
        return []
    return [_timer(row) for row in database.execute(_ALL)]


class TimerTable:
    """All methods raise ``StoreError``; what they wrote is on the disk when they return."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> list[TimerRow]:
        """Every timer, the next one first."""
        return [_timer(row) for row in await self._store.rows(_ALL)]

    async def set(self, row: TimerRow) -> None:
        """Writes a timer down; the outcome of one that is there stays."""
        detail = orjson.dumps(row.detail).decode()
        values = (row.id, row.kind, row.rule, row.zone, row.next, row.caller, detail, row.last, row.outcome)
        await self._store.change(SqlStatement(_SET, (*values, row.failed_since)))

    async def end(self, row: TimerRow, due: float) -> None:
        """Writes the outcome of a run and the next moment, unless the timer was changed since it was ``due``."""
        detail = orjson.dumps(row.detail).decode()
        values = (row.next, row.last, row.outcome, row.failed_since, detail, row.id, due)
        await self._store.change(SqlStatement(_END, values))

    async def remove(self, id: str) -> None:
        """Removes a timer; nothing when there is none."""
        await self._store.change(SqlStatement("DELETE FROM timers WHERE id = ?", (id,)))

    async def remove_run(self, id: str, due: float) -> None:
        """Removes a timer that ran once, unless it was set anew since it was ``due``."""
        await self._store.change(SqlStatement("DELETE FROM timers WHERE id = ? AND next = ?", (id, due)))


def _timer(row: tuple[Any, ...]) -> TimerRow:
    return TimerRow(
        id=row[0], kind=row[1], rule=row[2], zone=row[3], next=row[4], caller=row[5],
        detail=orjson.loads(row[6]), last=row[7], outcome=row[8], failed_since=row[9],
    )  # fmt: skip
