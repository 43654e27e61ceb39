"""The table of news that wait for the owner (``rappd.notices``)."""

from __future__ import annotations

import msgspec

from rappd.store.store import Store
from rappd.store.write_operations import SqlStatement

_SET = """INSERT INTO notices(key, kind, at, what, do, subject, told) VALUES(?,?,?,?,?,?,?) ON CONFLICT(key) DO UPDATE SET
    at = excluded.at, what = excluded.what, do = excluded.do, subject = excluded.subject, told = excluded.told"""


class Notice(msgspec.Struct, frozen=True):
    """One piece of news: what happened, what to do next. ``at`` is in seconds since 1970.

    ``subject`` names the thing it is about (an egg's path, an attempt's id); ``told``: a turn carried it.
    """

    key: str
    kind: str
    at: float
    what: str
    do: str
    subject: str = ""
    told: bool = False

    @property
    def line(self) -> str:
        """The event and what to do, in one line."""
        return f"{self.what} — {self.do}" if self.do else self.what


class NoticeTable:
    """All methods raise ``StoreError``. A write survives the death of the process; it does not wait for the disk."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def all(self) -> list[Notice]:
        """Every notice, the oldest first."""
        rows = await self._store.rows(
            "SELECT key, kind, at, what, do, subject, told FROM notices ORDER BY at, key"
        )
        return [Notice(row[0], row[1], row[2], row[3], row[4], row[5], bool(row[6])) for row in rows]

    async def set(self, notice: Notice) -> None:
        """Writes a notice down, in place of one with the same key."""
        values = (
            notice.key,
            notice.kind,
            notice.at,
            notice.what,
            notice.do,
            notice.subject,
            int(notice.told),
        )
        await self._store.change(SqlStatement(_SET, values), strict=False)

    async def remove(self, key: str) -> None:
        """Removes a notice; nothing when there is none."""
        await self._store.change(SqlStatement("DELETE FROM notices WHERE key = ?", (key,)), strict=False)
