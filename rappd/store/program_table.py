"""The table of foreign programs that connected (``rappd.features.programs``)."""

from __future__ import annotations

import msgspec

from rappd.store.store import Store
from rappd.store.write_operations import SqlStatement

_ALL = """SELECT protocol, key, name, first, last, turns, tokens, cost_usd, error, error_at FROM programs
    ORDER BY last"""
_SET = """INSERT INTO programs(protocol, key, name, first, last, turns, tokens, cost_usd, error, error_at)
    VALUES(?,?,?,?,?,?,?,?,?,?) ON CONFLICT(protocol, key, name) DO UPDATE SET
    last = excluded.last, turns = excluded.turns, tokens = excluded.tokens,
    cost_usd = excluded.cost_usd, error = excluded.error, error_at = excluded.error_at"""
_REMOVE = "DELETE FROM programs WHERE protocol = ? AND key = ? AND name = ?"


class ProgramRow(msgspec.Struct):
    """One program as lists show it. Moments are seconds since 1970, 0 for never."""

    protocol: str
    key: str
    name: str
    first: float
    last: float
    turns: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    error: str = ""
    error_at: float = 0.0

    @property
    def id(self) -> tuple[str, str, str]:
        """The three columns by which programs are told apart."""
        return self.protocol, self.key, self.name


class ProgramTable:
    """All methods raise ``StoreError``. A write survives the death of the process; it does not wait for the disk."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> list[ProgramRow]:
        """Every program, the one longest silent first."""
        return [ProgramRow(*row) for row in await self._store.rows(_ALL)]

    async def set(self, row: ProgramRow) -> None:
        """Writes a program down, in place of what was written of it before."""
        values = msgspec.structs.astuple(row)
        await self._store.change(SqlStatement(_SET, values), strict=False)

    async def remove(self, id: tuple[str, str, str]) -> None:
        """Removes a program; nothing when there is none."""
        await self._store.change(SqlStatement(_REMOVE, id), strict=False)
