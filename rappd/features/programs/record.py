"""The record of foreign programs: who connected, when, what that came to, and which conversation a history continues."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, Protocol

import msgspec

MOST = 200
"""Programs that are remembered. On this machine a program calls itself what it likes."""
MOST_CONVERSATIONS = 4096
_HEARD_ROLES = ("user", "assistant")


class Known(Protocol):
    """A program, as the record tells programs apart."""

    @property
    def protocol(self) -> str:
        """The protocol that it speaks."""
        ...

    @property
    def key(self) -> str:
        """Its token or machine, "" for a program on this machine without a token."""
        ...

    @property
    def name(self) -> str:
        """The name that it gives itself."""
        ...


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


class ProgramRecord:
    """All calls come from the event loop."""

    def __init__(self) -> None:
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

    def rows(self) -> list[ProgramRow]:
        """Every program, the latest first."""
        return list(reversed(self._rows.values()))

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
            while len(self._rows) > MOST:
                self._rows.popitem(last=False)
        self._rows.move_to_end(key)
        return row


def _digest(program: Known, sender: str, history: Iterable[Mapping[str, Any]]) -> bytes:
    digest = hashlib.sha256(f"{program.protocol}\0{sender}".encode())
    for message in history:
        content = message.get("content")
        if message.get("role") in _HEARD_ROLES and isinstance(content, str) and (text := content.strip()):
            digest.update(f"\0{message['role']}\0{len(text)}\0{text}".encode(errors="surrogatepass"))
    return digest.digest()
