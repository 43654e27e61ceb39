"""Eggs that came, by who sent them and under which id: a repeat is told what became of the first."""

from __future__ import annotations

import time

from neighborhoods.storage import EGG
from rappd.store.changes import Taking
from rappd.store.store import Store


class EggRows:
    """Rows of the table of envelopes that were taken; forgotten with the others. Raises ``StoreError``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def answer(self, sender: str, id: str) -> bytes | None:
        """What was answered; None when no such egg came."""
        rows = await self._store.rows(
            "SELECT body FROM inbox WHERE sender = ? AND id = ? AND verb = ?", (sender, id, EGG)
        )
        return bytes(rows[0][0]) if rows else None

    async def keep(self, sender: str, id: str, answer: bytes) -> None:
        """It is here, and this is answered. On the disk when it returns."""
        at = time.time_ns() // 1000
        await self._store.take(Taking(sender, id, EGG, "done", "", "", answer, at, []))
