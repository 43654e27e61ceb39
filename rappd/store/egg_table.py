"""Eggs that came, by who sent them and under which id: a repeat is told what became of the first."""

from __future__ import annotations

import time
from typing import TypedDict

from neighborhoods.durable_tables import EGG
from rappd.store.store import Store
from rappd.store.write_operations import InboxClaim


class KeptEgg(TypedDict):
    """An egg that was taken in."""

    id: str
    name: str
    size: int


class EggKept(TypedDict):
    """The answer to who sent an egg."""

    arrived: KeptEgg


class EggTable:
    """Received eggs as rows of the inbox, deleted with the others. Raises ``StoreError``."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def answer(self, sender: str, id: str) -> bytes | None:
        """Returns the recorded answer; None when no such egg came."""
        rows = await self._store.rows(
            "SELECT body FROM inbox WHERE sender = ? AND id = ? AND verb = ?", (sender, id, EGG)
        )
        return bytes(rows[0][0]) if rows else None

    async def keep(self, sender: str, id: str, answer: bytes) -> None:
        """Records the answer to a received egg, on the disk when it returns."""
        at = time.time_ns() // 1000
        await self._store.claim(InboxClaim(sender, id, EGG, "done", "", "", answer, at, []))
