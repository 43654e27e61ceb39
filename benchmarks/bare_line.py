"""A WebSocket over mutual TLS between two processes that only parse and answer: what a line itself costs here."""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from aiohttp import ClientSession, WSMsgType, web

from envelopes.certificates import make_certificate
from envelopes.keys import IdentityKey
from neighborhoods.trust.contexts import ServerTrust, TlsFiles, client_context


def measure() -> tuple[float, float]:
    """Milliseconds of one question at a time (p50), and questions/s at 32."""
    import uvloop

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, _ = _machine(folder, "ours"), _machine(folder, "theirs")
        command = [sys.executable, "-m", "benchmarks.bare_line", str(folder)]
        server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            port = int(server.stdout.readline())
            context = client_context((folder / "theirs.der").read_bytes(), ours)
            return uvloop.run(_ask(port, context))
        finally:
            server.stdin.close()
            server.wait(10)


async def _ask(port: int, context: Any) -> tuple[float, float]:
    waiting: dict[str, asyncio.Future[Any]] = {}
    async with ClientSession() as session, session.ws_connect(
        f"https://127.0.0.1:{port}/line", ssl=context
    ) as line:  # fmt: skip

        async def read() -> None:
            async for message in line:
                found = orjson.loads(message.data)
                waiting.pop(found["id"]).set_result(found)

        async def one() -> None:
            ident = str(uuid.uuid4())
            waiting[ident] = future = asyncio.get_running_loop().create_future()
            asked = {
                "id": ident,
                "from": "brainstem_0123456789abcdef",
                "to": "brainstem_fedcba9876543210",
                "verb": "HELP",
                "data": {"agent": "Echo", "args": {"text": "7"}},
            }
            await line.send_str(orjson.dumps(asked).decode())
            await future

        async def several(count: int) -> None:
            for _ in range(count):
                await one()

        reading = asyncio.get_running_loop().create_task(read())
        await several(50)
        took = []
        for _ in range(400):
            began = time.perf_counter()
            await one()
            took.append((time.perf_counter() - began) * 1000)
        rates = []
        for _ in range(3):
            began = time.perf_counter()
            await asyncio.gather(*(several(60) for _ in range(32)))
            rates.append(32 * 60 / (time.perf_counter() - began))
        reading.cancel()
        return statistics.median(took), statistics.median(rates)


def _machine(folder: Path, name: str) -> TlsFiles:
    made = make_certificate(IdentityKey.generate(), now=datetime.now(UTC))
    files = TlsFiles(folder / f"{name}.pem", folder / f"{name}-key.pem")
    files.certificate.write_bytes(made.certificate_pem)
    files.key.write_bytes(made.key_pem)
    (folder / f"{name}.der").write_bytes(made.certificate_der)
    return files


async def _serve(folder: Path) -> None:
    trust = ServerTrust(
        TlsFiles(folder / "theirs.pem", folder / "theirs-key.pem"), [(folder / "ours.der").read_bytes()]
    )
    app = web.Application()
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
            text = asked["data"]["args"]["text"]
            reply = {
                "id": asked["id"],
                "from": asked["to"],
                "to": asked["from"],
                "verb": "DONE",
                "data": {"result": text},
            }
            await line.send_str(orjson.dumps(reply).decode())
    return line


if __name__ == "__main__":
    import uvloop

    uvloop.run(_serve(Path(sys.argv[1])))
