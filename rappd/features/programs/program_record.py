"""The record of foreign programs: who connected, when, what that came to, and which conversation a history continues."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import time
from collections import OrderedDict
from collections.abc import Awaitable, Iterable, Mapping
from typing import Any, Protocol

from rappd.errors import StoreError
from rappd.store.program_table import ProgramRow, ProgramTable
from twins.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)

MOST = 200
"""Programs that are remembered. On this machine a program calls itself what it likes."""
STRANGER = "?"
"""The key of all who were not let in."""
MOST_CONVERSATIONS = 4096
WRITTEN_AFTER = 2.0
"""Seconds after which what was noted is written down: a kill costs a moment, and no turn waits."""
_HEARD_ROLES = ("user", "assistant")


class Known(Protocol):
    """A program, as the record tells programs apart."""

    @property
    def protocol(self) -> str:
        """The protocol that it speaks."""
        ...

    @property
    def key(self) -> str:
        """The caller's token or machine, "" for a program on this machine without a token."""
        ...

    @property
    def name(self) -> str:
        """The name that it gives itself."""
        ...


class ProgramRecord:
    """All calls come from the event loop."""

    def __init__(self, table: ProgramTable) -> None:
        self._table = table
        self._loaded = False
        self._changed: set[tuple[str, str, str]] = set()
        self._writing: asyncio.TimerHandle | None = None
        self._written = BackgroundTasks("when a program connected was not noted")
        self._rows: OrderedDict[tuple[str, str, str], ProgramRow] = OrderedDict()
        self._continued: OrderedDict[bytes, str] = OrderedDict()

    def seen(self, program: Known, *, error: str = "") -> None:
        """Notes that a program connected, or that it was refused with ``error``."""
        row = self._row(program)
        row.last = time.time()
        if error:
            row.error, row.error_at = error[:500], row.last

    def answered(self, program: Known, data: Mapping[str, Any]) -> None:
        """Counts a turn of a program by the data of its DONE."""
        row = self._row(program)
        row.turns += 1
        row.tokens += data.get("tokens") or 0
        row.cost_usd += data.get("cost_usd") or 0.0

    async def load(self) -> None:
        """Reads what earlier daemons noted, once."""
        if self._loaded:
            return
        kept = [row for row in await self._table.all() if row.id not in self._rows]
        self._loaded = True
        since, self._rows = self._rows, OrderedDict((row.id, row) for row in kept)
        self._rows.update(since)

    def rows(self) -> list[ProgramRow]:
        """Every program, the latest first."""
        return sorted(self._rows.values(), key=lambda row: -row.last)

    async def close(self) -> None:
        """Writes down what is not yet."""
        if self._writing is not None:
            self._writing.cancel()
            await self._write()
        await self._written.settle()

    def session_after(self, program: Known, sender: str, history: Iterable[Mapping[str, Any]]) -> str:
        """The session in which exactly this was said, "" where it is not known: clients repeat all that was said."""
        return self._continued.get(_digest(program, sender, history), "")

    def continues(
        self, program: Known, sender: str, history: Iterable[Mapping[str, Any]], session: str
    ) -> None:
        """Remembers in which session ``history``, the latest answer included, was said."""
        self._continued[_digest(program, sender, history)] = session
        while len(self._continued) > MOST_CONVERSATIONS:
            self._continued.popitem(last=False)

    def _row(self, program: Known) -> ProgramRow:
        key = program.protocol, program.key, program.name
        row = self._rows.get(key)
        if row is None:
            now = time.time()
            row = self._rows[key] = ProgramRow(*key, now, now)
        self._rows.move_to_end(key)
        self._changed.add(key)
        if self._writing is None:
            self._writing = asyncio.get_running_loop().call_later(WRITTEN_AFTER, self._write_later)
        return row

    def _write_later(self) -> None:
        self._written.spawn(self._write())

    async def _write(self) -> None:
        self._writing, changed, self._changed = None, self._changed, set()
        while len(self._rows) > MOST:
            gone, _ = self._rows.popitem(last=False)
            changed.discard(gone)
            await self._kept(self._table.remove(gone))
        for key in changed:
            await self._kept(self._table.set(self._rows[key]))

    async def _kept(self, writing: Awaitable[None]) -> None:
        try:
            await writing
        except StoreError as problem:
            log.warning("when a program connected could not be noted: %s", problem)


def _digest(program: Known, sender: str, history: Iterable[Mapping[str, Any]]) -> bytes:
    digest = hashlib.sha256(f"{program.protocol}\0{sender}".encode())
    for message in history:
        content = message.get("content")
        if message.get("role") in _HEARD_ROLES and isinstance(content, str) and (text := content.strip()):
            digest.update(f"\0{message['role']}\0{len(text)}\0{text}".encode(errors="surrogatepass"))
    return digest.digest()
