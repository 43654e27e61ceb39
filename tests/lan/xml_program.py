"""A program on some machine that speaks HTTP and WebSocket, as lines of JSON tell it; it prints a JSON object for each.

``{"url", "method", "headers", "body", "certificate"}`` is one request: its ``status`` and ``text``.
``{"url", "frames", "replies", "certificate"}`` sends frames over a WebSocket: ``frames`` that came, and ``close``, the code
with which the other side ended it (0: it did not). One is awaited after each that is sent, and ``first`` before; ``FROM`` in
them stands for the name in the first that came.
"""

from __future__ import annotations

import asyncio
import json
import re
import ssl
import sys
from typing import Any

from aiohttp import ClientSession, ClientTimeout, WSMsgType

_SECONDS = 25.0


def context_of(files: list[str]) -> ssl.SSLContext:
    context = ssl._create_unverified_context()
    if files:
        context.load_cert_chain(*files)
    return context


async def request(session: ClientSession, wanted: dict[str, Any]) -> dict[str, Any]:
    async with session.request(
        wanted.get("method", "POST"),
        wanted["url"],
        data=wanted.get("body", "").encode(),
        headers=wanted.get("headers", {}),
        ssl=context_of(wanted.get("certificate", [])),
    ) as got:
        return {"status": got.status, "text": (await got.read()).decode(errors="replace")}


async def talk(session: ClientSession, wanted: dict[str, Any]) -> dict[str, Any]:
    came: list[str] = []
    async with session.ws_connect(
        wanted["url"], ssl=context_of(wanted.get("certificate", [])), headers=wanted.get("headers", {})
    ) as socket:

        async def read() -> bool:
            frame = await socket.receive(_SECONDS)
            if frame.type not in (WSMsgType.TEXT, WSMsgType.BINARY):
                return False
            came.append(frame.data if isinstance(frame.data, str) else frame.data.decode())
            return True

        for _ in range(wanted.get("first", 0)):
            await read()
        for one in wanted["frames"]:
            name = re.search('from="([^"]*)"', came[0]) if came else None
            await socket.send_str(one.replace("FROM", name[1]) if name else one)
            if not await read():
                break
        if not wanted["frames"] and not wanted.get("first"):
            await read()
        return {"frames": came, "close": socket.close_code or 0}


async def main() -> None:
    lines = asyncio.StreamReader(limit=1 << 24)
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    while line := await lines.readline():
        wanted = json.loads(line)
        try:
            async with ClientSession(timeout=ClientTimeout(total=60)) as session:
                said = await (talk if "frames" in wanted else request)(session, wanted)
        except Exception as error:
            said = {"status": 0, "text": f"{type(error).__name__}: {error}", "frames": [], "close": 0}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
