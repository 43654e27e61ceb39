"""The barest call that keeps the rules: strict envelopes, chained threads, each HELP begun once and answered once.

The record has rappd's tables, and nothing but the statements that a call needs, in a row; who asks and who answers
know beforehand what rappd has to look up, check, plan and report.
"""

from __future__ import annotations

import asyncio
import time
from itertools import count
from pathlib import Path
from typing import Any

from aiohttp import ClientWebSocketResponse, web

from benchmarks.bare_steps import BareListener, BareWorker, Steps
from envelopes.codecs import emergence, wire
from envelopes.codecs.emergence import GENESIS, link
from envelopes.envelope import DONE, HELP, THREAD, Envelope, new_id, thread_id
from rappd.store.connections import open_writing

_OURS, _THEIRS = "brainstem_0123456789abcdef", "brainstem_fedcba9876543210"
_BEGUN = """INSERT INTO inbox(sender, id, verb, state, workspace, thread, body, at)
    SELECT ?1, ?2, ?3, 'started', 'brainstem', ?4, x'', ?5
    WHERE NOT EXISTS (SELECT 1 FROM events WHERE answers = 1 AND recipient = ?1 AND id = ?2)"""
_OVER = "DELETE FROM inbox WHERE sender = ? AND id = ? AND verb = ?"
_THREAD = """INSERT INTO threads(number, id, workspace, caller, session, title, created, updated, count, head)
    VALUES(?, ?, 'brainstem', ?, ?, 'Echo', ?, ?, ?, ?)"""
_ADVANCE = "UPDATE threads SET count = ?, head = ?, updated = ? WHERE number = ?"
_EVENT = """INSERT INTO events(thread, n, at, verb, sender, recipient, id, body, answers, prev, hash)
    VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"""


class RuledRecord(Steps):
    """rappd's tables; ``put`` takes statements with their values."""

    def __init__(self, path: Path) -> None:
        super().__init__(open_writing(path), Path(f"{path}-wal"))
        self.numbers = count(1)

    def carry_out(self, rows: list[Any]) -> None:
        """Implements ``Steps``."""
        for statement, values in rows:
            self._db.execute(statement, values)


class _Thread:
    """A new thread of a call, and the statements that write it down."""

    def __init__(self, record: RuledRecord, sender: str, session: str) -> None:
        self._number = next(record.numbers)
        self._session = f'"{session}"'
        self._sender = sender
        self._head = GENESIS
        self._events = 0
        self.id = thread_id("brainstem", sender, self._session)

    def begins(self, envelope: Envelope) -> list[Any]:
        """Itself and its first event."""
        event = self.goes_on(envelope)[1]
        at, head = _now(), bytearray(self._head)
        row = (self._number, self.id, self._sender, self._session, at, at, self._events, head)
        return [(_THREAD, row), event]

    def goes_on(self, envelope: Envelope, *, answers: int = 0) -> list[Any]:
        """One event more."""
        self._events += 1
        at, body, before = _now(), emergence.encode(envelope), self._head
        self._head = link(before, at, body)
        event = (
            self._number, self._events, at, envelope.verb, envelope.sender, envelope.recipient, envelope.id,
            bytearray(body), answers, bytearray(before), bytearray(self._head),
        )  # fmt: skip
        return [(_ADVANCE, (self._events, bytearray(self._head), at, self._number)), (_EVENT, event)]


class RuledAsker:
    """Asks, and has question and answer committed."""

    def __init__(self, line: ClientWebSocketResponse, record: RuledRecord) -> None:
        self._line = line
        self._record = record
        self._waiting: dict[str, asyncio.Future[Envelope]] = {}

    async def read(self) -> None:
        """Reads answers until the line ends."""
        async for message in self._line:
            found = wire.decode(message.data.encode())
            self._waiting.pop(found.id).set_result(found)

    async def ask(self) -> None:
        """One question."""
        thread = _Thread(self._record, _OURS, new_id())
        data = {"agent": "Echo", "args": {"text": "7"}}
        asked = Envelope(new_id(), _OURS, _THEIRS, HELP, data, {THREAD: thread.id})
        self._waiting[asked.id] = future = asyncio.get_running_loop().create_future()
        await self._line.send_str(emergence.encode(asked).decode())
        begun = thread.begins(asked)
        await self._record.put(*begun, *thread.goes_on(await future))


class RuledCalls(BareListener):
    """Answers, each HELP once: its start committed, a worker asked, its answer committed and synced."""

    def __init__(self, record: RuledRecord, worker: BareWorker) -> None:
        super().__init__()
        self._record = record
        self._worker = worker

    async def answer(self, line: web.WebSocketResponse, raw: str) -> None:
        """Implements ``BareListener``."""
        asked = wire.decode(raw.encode())
        thread = _Thread(self._record, asked.sender, asked.extensions[THREAD])
        key = (asked.sender, asked.id, asked.verb)
        here = _on(asked, thread.id)
        await self._record.put((_BEGUN, (*key, thread.id, _now())), *thread.begins(here))
        reply = here.reply(DONE, {"result": await self._worker.ask(asked.data["args"]["text"])})
        await self._record.put((_OVER, key), *thread.goes_on(reply, answers=1), synced=True)
        await line.send_str(emergence.encode(_on(reply, asked.extensions[THREAD])).decode())


def _on(envelope: Envelope, thread: str) -> Envelope:
    return Envelope(
        envelope.id, envelope.sender, envelope.recipient, envelope.verb, envelope.data, {THREAD: thread}
    )


def _now() -> int:
    return time.time_ns() // 1000
