"""Many machines in one process: each has a key, a certificate and a port on loopback, and answers HELLO on a line.

    python -m benchmarks.simulated_peers HERE AWAY FOLDER

HERE of them answer, AWAY have a port at which nobody listens. Writes ``FOLDER/peers.json`` with what a book
holds of them, prints ``ready``, and answers until its input ends.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import socket
import ssl
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
from aiohttp import WSMsgType, web

from envelopes.identity.certificates import TlsMaterial, make_certificate
from envelopes.identity.keys import IdentityKey

_NOBODY = 9  # discard: closed wherever nobody opened it


async def main(here: int, away: int, folder: Path) -> None:
    """Serves those that are here."""
    logging.disable(logging.CRITICAL)  # callers that gave up are no news
    app = web.Application()
    app.router.add_get("/line", _line)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    found: list[dict[str, Any]] = []
    for number in range(here + away):
        key = IdentityKey.generate()
        material = make_certificate(key, now=datetime.now(UTC))
        port = await _listen(runner, _context(material, folder)) if number < here else _NOBODY
        found.append(
            {
                "name": f"peer{number:04d}",
                "fingerprint": key.fingerprint,
                "public_key": key.public.hex(),
                "certificate": base64.b64encode(material.certificate_der).decode(),
                "address": f"127.0.0.1:{port}",
            }
        )
    (folder / "peers.json").write_bytes(orjson.dumps(found))
    print("ready", flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


async def _listen(runner: web.AppRunner, context: ssl.SSLContext) -> int:
    listener = socket.create_server(("127.0.0.1", 0))
    await web.SockSite(runner, listener, ssl_context=context).start()
    port: int = listener.getsockname()[1]
    return port


async def _line(request: web.Request) -> web.WebSocketResponse:
    line = web.WebSocketResponse(protocols=("rappd.1",))
    await line.prepare(request)
    async for message in line:
        if message.type is not WSMsgType.TEXT:
            continue
        asked = orjson.loads(message.data)
        if asked["verb"] == "HELLO":
            data = {"capabilities": [], "name": "", "agents": [], "verbs": ["HELLO", "HELP"]}
            reply = {
                "id": asked["id"],
                "from": asked["to"],
                "to": asked["from"],
                "verb": "HELLO",
                "data": data,
            }
            await line.send_str(orjson.dumps(reply).decode())
    return line


def _context(material: TlsMaterial, folder: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    pem = folder / "machine.pem"
    pem.write_bytes(material.key_pem + material.certificate_pem)
    context.load_cert_chain(pem)
    return context


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])))
