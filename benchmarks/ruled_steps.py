"""The barest call that keeps the rules: strict envelopes, rappd's own record, each HELP begun once, answered once."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from aiohttp import ClientWebSocketResponse, WSMsgType, web

from benchmarks.bare_steps import BareWorker
from envelopes import emergence, wire
from envelopes.record import DONE, HELP, THREAD, Envelope, new_id, new_session, thread_id
from rappd.store.changes import Taking
from rappd.store.records import Record, ThreadInfo
from rappd.store.store import Store

_OURS, _THEIRS = "brainstem_0123456789abcdef", "brainstem_fedcba9876543210"


class RuledRecord:
    """A ``Store``, and how envelopes get into it."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @classmethod
    async def open(cls, path: Path) -> RuledRecord:
        """Opens a new one."""
        return cls(await Store.open(path))

    def begun(self, sender: str, session: str, *, fresh: bool) -> ThreadInfo:
        """The thread of a call."""
        text = f'"{session}"'
        return ThreadInfo(
            thread_id("brainstem", sender, text), "brainstem", sender, text, "Echo", _now(), fresh
        )

    def row(self, envelope: Envelope, *, answers: bool = False) -> Record:
        """An envelope that is on a thread, as a record."""
        return Record(
            envelope.extensions[THREAD],
            envelope.verb,
            envelope.sender,
            envelope.recipient,
            envelope.id,
            emergence.encode(envelope),
            _now(),
            answers,
        )


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
        info = self._record.begun(_OURS, new_session(), fresh=True)
        asked = Envelope(
            new_id(), _OURS, _THEIRS, HELP, {"agent": "Echo", "args": {"text": "7"}}, {THREAD: info.id}
        )
        self._waiting[asked.id] = future = asyncio.get_running_loop().create_future()
        await self._line.send_str(emergence.encode(asked).decode())
        self._record.store.thread(info)
        self._record.store.queue(self._record.row(asked), hasten=True)
        await self._record.store.commit(self._record.row(await future))


class RuledCalls:
    """Answers, each HELP once: its start committed, a worker asked, its answer committed and synced."""

    def __init__(self, record: RuledRecord, worker: BareWorker) -> None:
        self._record = record
        self._worker = worker
        self._working: set[asyncio.Task[None]] = set()

    async def line(self, request: web.Request) -> web.WebSocketResponse:
        """The door."""
        line = web.WebSocketResponse(compress=False)
        await line.prepare(request)
        async for message in line:
            if message.type is WSMsgType.TEXT:
                task = asyncio.get_running_loop().create_task(self._work(line, message.data))
                self._working.add(task)
                task.add_done_callback(self._working.discard)
        return line

    async def _work(self, line: web.WebSocketResponse, raw: str) -> None:
        asked = wire.decode(raw.encode())
        store = self._record.store
        info = self._record.begun(asked.sender, asked.extensions[THREAD], fresh=False)
        key = (asked.sender, asked.id, asked.verb)
        here = _on(asked, info.id)
        records: list[Record | ThreadInfo] = [info, self._record.row(here)]
        with store.gathering.turn():
            if await store.take(
                Taking(*key, "started", "brainstem", info.id, b"", _now(), records), strict=False
            ):
                return
            reply = here.reply(DONE, {"result": await self._worker.ask(asked.data["args"]["text"])})
            await store.commit_reply(self._record.row(reply, answers=True), *key)
        await line.send_str(emergence.encode(_on(reply, asked.extensions[THREAD])).decode())


def _on(envelope: Envelope, thread: str) -> Envelope:
    return Envelope(
        envelope.id, envelope.sender, envelope.recipient, envelope.verb, envelope.data, {THREAD: thread}
    )


def _now() -> int:
    return time.time_ns() // 1000
