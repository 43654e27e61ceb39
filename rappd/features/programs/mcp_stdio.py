"""MCP on stdin and stdout, for desktop programs: each line goes to the running daemon's ``/mcp``, over the control socket.

Nothing is understood here but what the transport needs. Each request gets a key of its own, so that it is sent again
to the next daemon when one ends in the middle: begun once, and answered once.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress

import aiohttp

from envelopes.codecs import jsonrpc, mcp
from envelopes.codecs.jsonrpc import Id, RpcCall, RpcError
from rappd.daemon.home import Home
from twins.background_tasks import BackgroundTasks

MOST_OF_A_LINE = jsonrpc.MOST_BYTES
AWAY_SECONDS = 30.0
"""A daemon that ended is waited for so long: a restart is noticed by nobody."""
_AGAIN_SECONDS = 0.25
_LISTEN_AGAIN_SECONDS = 2.0
_NOT_RUNNING = -32000

Write = Callable[[bytes], Awaitable[None]]


class McpBridge:
    """One program on stdio. ``write`` puts one line out; lines come to ``take``."""

    def __init__(self, session: aiohttp.ClientSession, write: Write) -> None:
        self._http, self._write = session, write
        self._session = ""
        self._greeting: asyncio.Task[None] | None = None
        self._running: dict[Id, tuple[asyncio.Task[None], bool]] = {}
        self._background = BackgroundTasks("a line of a program was not passed on")

    async def take(self, line: bytes) -> None:
        """Sends one line on its way; its answer comes by ``write``."""
        if not line.strip():
            return
        try:
            found = jsonrpc.decode(line)
        except RpcError as problem:
            await self._write(jsonrpc.refused(problem))
            return
        if not isinstance(found, RpcCall):
            return  # nobody asked the program anything
        if self._greeting is not None:  # what a program says before it is greeted is of the same session
            await asyncio.wait({self._greeting})
        if found.id is None:
            await self._notified(found, line)
            return
        task = asyncio.create_task(self._ask(found, found.id, line))
        self._running[found.id] = task, mcp.headers_of(found) != {}
        if found.method == "initialize":
            self._greeting = task
        task.add_done_callback(lambda _: self._ended(found.id, task))

    async def close(self) -> None:
        """Waits for what was asked, not for streams that have no end, and lets go of those."""
        await asyncio.gather(*(task for task, _ in self._running.values()), return_exceptions=True)
        await self._background.close()

    async def _notified(self, call: RpcCall, line: bytes) -> None:
        named = call.params.get("requestId")
        if call.method == "notifications/cancelled" and isinstance(named, str | int):
            running = self._running.get(named)
            if running is not None and running[1]:  # in the newer era the end of a request is its cancelling
                running[0].cancel()
                return
        with suppress(aiohttp.ClientError, OSError):
            async with self._http.post("http://rappd/mcp", data=line, headers=self._headers(call)):
                pass
        if call.method == "notifications/initialized" and self._session:
            self._background.spawn(self._listen())

    def _headers(self, call: RpcCall) -> dict[str, str]:
        found = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self._session:
            found[mcp.SESSION_HEADER] = self._session
        return found | mcp.headers_of(call)

    async def _ask(self, call: RpcCall, id: Id, line: bytes) -> None:
        if call.method == "initialize":
            self._session = ""
        headers = self._headers(call)
        headers[mcp.KEY_HEADER] = mcp.task_id(time.time_ns() // 1_000_000, os.urandom(10))
        if call.method == "subscriptions/listen":
            task = asyncio.current_task()
            assert task is not None
            self._running.pop(id, None)
            self._background.spawn(task)  # which runs already
        until = asyncio.get_running_loop().time() + AWAY_SECONDS
        while True:
            try:
                await self._once(line, headers, id)
                return
            except (aiohttp.ClientError, OSError):
                if asyncio.get_running_loop().time() >= until:
                    break
                await asyncio.sleep(_AGAIN_SECONDS)
        problem = RpcError(_NOT_RUNNING, "rappd is not running.", id=id, do="rappd start")
        await self._write(jsonrpc.refused(problem))

    async def _once(self, line: bytes, headers: dict[str, str], id: Id) -> None:
        async with self._http.post("http://rappd/mcp", data=line, headers=headers) as answer:
            self._session = answer.headers.get(mcp.SESSION_HEADER, self._session)
            if answer.content_type != "text/event-stream":
                if body := await answer.read():
                    # A program that was not let in is refused before its message is read, whose id that is.
                    await self._write(body if answer.status < 400 else jsonrpc.with_id(body, id))
                return
            await self._pass_on(answer)

    async def _pass_on(self, answer: aiohttp.ClientResponse) -> None:
        """Writes the data of each event as it comes. Raises ``ClientPayloadError`` where the stream breaks off."""
        begun = bytearray()
        async for piece in answer.content.iter_any():
            begun += piece
            while (end := begun.find(b"\n\n")) >= 0:
                event = bytes(begun[:end])
                del begun[: end + 2]
                for part in event.split(b"\n"):
                    if part.startswith(b"data: "):
                        await self._write(part[6:])

    async def _listen(self) -> None:
        """Passes word of changed tools on, to a program of the older revisions."""
        headers = {"Accept": "text/event-stream", mcp.SESSION_HEADER: self._session}
        while True:
            with suppress(aiohttp.ClientError, OSError):
                async with self._http.get("http://rappd/mcp", headers=headers) as answer:
                    if answer.status != 200:
                        return
                    await self._pass_on(answer)
            await asyncio.sleep(_LISTEN_AGAIN_SECONDS)

    def _ended(self, id: Id | None, task: asyncio.Task[None]) -> None:
        if id is not None and self._running.get(id, (None, False))[0] is task:
            del self._running[id]


def run(home: Home) -> None:
    """Serves the program at stdin and stdout until it closes stdin."""
    asyncio.run(_run(home))


def line_writer() -> Callable[[bytes], Awaitable[None]]:
    """A function that writes one line to stdout at a time, off the event loop."""
    out, lock = sys.stdout.buffer, asyncio.Lock()

    def put(line: bytes) -> None:
        out.write(line.replace(b"\n", b" ") + b"\n")
        out.flush()

    async def write(line: bytes) -> None:
        async with lock:
            await asyncio.to_thread(put, line)

    return write


async def _run(home: Home) -> None:
    write = line_writer()

    connector = aiohttp.UnixConnector(path=str(home.socket), limit=0)
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=10)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        bridge = McpBridge(session, write)
        while line := await asyncio.to_thread(sys.stdin.buffer.readline, MOST_OF_A_LINE + 1):
            await bridge.take(line)
        await bridge.close()
