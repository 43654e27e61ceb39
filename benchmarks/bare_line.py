"""A WebSocket over mutual TLS between two processes: what a line itself costs here, and the barest durable call.

A durable call adds what no call can do without: its start committed, a worker process asked, its answer
committed and synced, and at the caller question and answer committed. It has no gate, no trust, no chain. A kept
call is one without the sync and without the caller's record. A ruled call is a durable one of strictly checked
envelopes, in tables like rappd's: with threads, chains, and each HELP begun once, whatever is repeated.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, cast

import orjson
from aiohttp import ClientSession, ClientWebSocketResponse, WSMsgType, web

from benchmarks.bare_steps import BareListener, BareRecord, BareWorker
from benchmarks.ruled_steps import RuledAsker, RuledCalls, RuledRecord
from envelopes.identity.certificates import make_certificate
from envelopes.identity.keys import IdentityKey
from neighborhoods.auth.tls import ServerTrust, TlsFiles, client_context

What = Literal["line", "kept", "durable", "ruled"]
OURS, THEIRS = "1", "0"
"""The core of who asks, and of who answers: two machines of one core each."""
Ask = Callable[[], Awaitable[None]]
"""One question, with its answer."""


@asynccontextmanager
async def opened(what: What) -> AsyncIterator[Ask]:
    """A process that answers, on a core of its own, and a line to it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, _ = _machine(folder, "ours"), _machine(folder, "theirs")
        command = ["taskset", "-c", THEIRS, sys.executable, "-m", "benchmarks.bare_line", str(folder), what]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert server.stdin is not None
        assert server.stdout is not None
        record: BareRecord | RuledRecord | None = None
        if what == "durable":
            record = BareRecord(folder / "ours.db")
        elif what == "ruled":
            record = RuledRecord(folder / "ours.db")
        try:
            url = f"https://127.0.0.1:{int(await asyncio.to_thread(server.stdout.readline))}/line"
            context = client_context((folder / "theirs.der").read_bytes(), ours)
            async with ClientSession() as session, session.ws_connect(url, ssl=context) as line:
                asker = RuledAsker(line, record) if isinstance(record, RuledRecord) else _Asker(line, record)
                reading = asyncio.get_running_loop().create_task(asker.read())
                yield asker.ask
                reading.cancel()
        finally:
            server.stdin.close()
            await asyncio.to_thread(server.wait, 10)


class _Asker:
    def __init__(self, line: ClientWebSocketResponse, record: BareRecord | None) -> None:
        self._line = line
        self._record = record
        self._waiting: dict[str, asyncio.Future[Any]] = {}

    async def read(self) -> None:
        async for message in self._line:
            found = orjson.loads(message.data)
            self._waiting.pop(found["id"]).set_result(found)

    async def ask(self) -> None:
        ident = str(uuid.uuid4())
        self._waiting[ident] = future = asyncio.get_running_loop().create_future()
        asked = {
            "id": ident,
            "from": "brainstem_0123456789abcdef",
            "to": "brainstem_fedcba9876543210",
            "verb": "HELP",
            "data": {"agent": "Echo", "args": {"text": "7"}},
        }
        sent = orjson.dumps(asked)
        await self._line.send_str(sent.decode())
        reply = await future
        if self._record:
            await self._record.put((ident, "HELP", sent), (ident, "DONE", orjson.dumps(reply)))


async def one_by_one(ask: Ask, calls: int) -> list[float]:
    """Milliseconds of each."""
    took = []
    for _ in range(calls):
        began = time.perf_counter()
        await ask()
        took.append((time.perf_counter() - began) * 1000)
    return took


async def rate(ask: Ask, abreast: int, calls: int) -> float:
    """Calls/s where ``abreast`` tasks each ask one after the other."""

    async def several() -> None:
        for _ in range(calls // abreast):
            await ask()

    began = time.perf_counter()
    await asyncio.gather(*(several() for _ in range(abreast)))
    return calls / (time.perf_counter() - began)


def _machine(folder: Path, name: str) -> TlsFiles:
    made = make_certificate(IdentityKey.generate(), now=datetime.now(UTC))
    files = TlsFiles(folder / f"{name}.pem", folder / f"{name}-key.pem")
    files.certificate.write_bytes(made.certificate_pem)
    files.key.write_bytes(made.key_pem)
    (folder / f"{name}.der").write_bytes(made.certificate_der)
    return files


async def _serve(folder: Path, what: What) -> None:
    trust = ServerTrust(
        TlsFiles(folder / "theirs.pem", folder / "theirs-key.pem"), [(folder / "ours.der").read_bytes()]
    )
    app = web.Application()
    if what == "ruled":
        worker = BareWorker()
        worker.attach()
        ruled = RuledCalls(RuledRecord(folder / "theirs.db"), worker)
        app.router.add_get("/line", ruled.line)
    elif what != "line":
        worker = BareWorker()
        worker.attach()
        calls = _Calls(BareRecord(folder / "theirs.db"), worker, synced=what == "durable")
        app.router.add_get("/line", calls.line)
    else:
        app.router.add_get("/line", _line)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=trust.context)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


async def _line(request: web.Request) -> web.WebSocketResponse:
    line = web.WebSocketResponse(compress=False)
    await line.prepare(request)
    async for message in line:
        if message.type is WSMsgType.TEXT:
            asked = orjson.loads(message.data)
            await line.send_str(_reply(asked, asked["data"]["args"]["text"]).decode())
    return line


class _Calls(BareListener):
    def __init__(self, record: BareRecord, worker: BareWorker, *, synced: bool) -> None:
        super().__init__()
        self._record = record
        self._synced = synced
        self._worker = worker

    async def answer(self, line: web.WebSocketResponse, raw: str) -> None:
        asked = orjson.loads(raw)
        await self._record.put((asked["id"], "HELP", raw.encode()))
        reply = _reply(asked, await self._worker.ask(asked["data"]["args"]["text"]))
        await self._record.put((asked["id"], "DONE", reply), synced=self._synced)
        await line.send_str(reply.decode())


def _reply(asked: dict[str, Any], text: str) -> bytes:
    reply = {
        "id": asked["id"],
        "from": asked["to"],
        "to": asked["from"],
        "verb": "DONE",
        "data": {"result": text},
    }
    return orjson.dumps(reply)


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), cast(What, sys.argv[2])))
