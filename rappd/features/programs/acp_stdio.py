"""The Agent Client Protocol on stdin and stdout, for editors: each line goes to the running daemon's ``/acp`` and back.

When the daemon ends, what was asked of it is asked of the next one, under the same key: a prompt is begun once.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import aiohttp
import orjson

from envelopes.codecs import acp, jsonrpc
from envelopes.codecs.jsonrpc import INVALID_REQUEST, Id, RpcAnswer, RpcCall, RpcError
from envelopes.envelope import new_id
from rappd.daemon.home import Home
from rappd.features.programs.mcp_stdio import line_writer

AWAY_SECONDS = 30.0
"""A daemon that ended is waited for so long: a restart is noticed by nobody."""
_AGAIN_SECONDS = 0.25
_NOT_RUNNING = -32000
_LOOK_AGAIN_SECONDS = 1.0
_END_SECONDS = 5.0

Write = Callable[[bytes], Awaitable[None]]


class NotLetInError(Exception):
    """The daemon runs, and refuses editors."""


class AcpBridge:
    """One editor on stdio. ``connect`` opens a connection to the daemon; ``write`` puts one line out.

    ``connect`` raises ``NotLetInError``, whose text says why.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[aiohttp.ClientWebSocketResponse]],
        write: Write,
    ) -> None:
        self._connect, self._write = connect, write
        self._socket: aiohttp.ClientWebSocketResponse | None = None
        self._greeting = b""
        self._waiting: dict[Id, bytes] = {}
        self._sent: set[Id] = set()
        """Of those that wait, what this connection was sent."""
        self._sending = asyncio.Lock()
        self._idle = asyncio.Event()
        self._idle.set()

    async def run(self, lines: AsyncIterator[bytes]) -> None:
        """Serves the editor until its lines end; prompts that are under way then have a moment to end."""
        reading = asyncio.ensure_future(self._read())
        try:
            async for line in lines:
                await self._take(line)
            with suppress(TimeoutError):
                async with asyncio.timeout(_END_SECONDS):
                    await self._idle.wait()
            await self.interrupt()
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            if self._socket is not None:
                await self._socket.close()

    async def interrupt(self) -> None:
        """Cancels the prompts that are under way."""
        for octets in list(self._waiting.values()):
            await self._cancel(octets)

    async def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        try:
            found = jsonrpc.decode(line)
        except RpcError as problem:
            await self._write(jsonrpc.refused(problem))
            return
        octets = line.strip()
        if isinstance(found, RpcCall) and found.id is not None:
            if found.id in self._waiting:
                refusal = RpcError(
                    INVALID_REQUEST, "A request of that id is under way.", do="Send another id."
                )
                await self._write(jsonrpc.refused(refusal, found.id))
                return
            if found.method == "session/prompt":
                meta = found.params.get("_meta")
                keyed = {**(meta if isinstance(meta, dict) else {}), acp.KEY: new_id()}
                octets = jsonrpc.request(found.id, found.method, {**found.params, "_meta": keyed})
            if found.method == "initialize":
                self._greeting = octets
            self._waiting[found.id] = octets
            self._idle.clear()
            await self._ask()
        else:
            await self._say(octets)

    async def _ask(self) -> None:
        """Sends each request that waits, once over each connection."""
        async with self._sending:
            for id, octets in list(self._waiting.items()):
                if self._socket is not None and id not in self._sent:
                    self._sent.add(id)
                    await self._say(octets)

    async def _say(self, octets: bytes) -> None:
        if self._socket is not None and not self._socket.closed:
            with suppress(ConnectionError, aiohttp.ClientError):
                await self._socket.send_str(octets.decode())

    async def _read(self) -> None:
        """Keeps a connection, and passes on what comes over it."""
        first = True
        while True:
            try:
                socket = await self._opened()
            except NotLetInError as refused:
                await self._give_up(str(refused), do="")
                await asyncio.sleep(_LOOK_AGAIN_SECONDS)
                continue
            if socket is None:
                await self._give_up()
                continue
            if not first and self._greeting and self._greeting not in self._waiting.values():
                await self._greet_again(socket)
            first = False
            self._socket = socket
            await self._ask()
            async for frame in socket:
                if frame.type == aiohttp.WSMsgType.TEXT:
                    await self._pass_on(frame.data.encode())
            self._socket = None
            self._sent.clear()
            if socket.close_code == aiohttp.WSCloseCode.MESSAGE_TOO_BIG:
                await self._give_up("That is more than fits into one message.", do="Send less.")

    async def _opened(self) -> aiohttp.ClientWebSocketResponse | None:
        until = asyncio.get_running_loop().time() + AWAY_SECONDS
        while asyncio.get_running_loop().time() < until:
            with suppress(aiohttp.ClientError, OSError):
                return await self._connect()
            await asyncio.sleep(_AGAIN_SECONDS)
        return None

    async def _greet_again(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        """Introduces the editor to another daemon; that answer is for nobody."""
        with suppress(ConnectionError, aiohttp.ClientError, TypeError):
            await socket.send_str(self._greeting.decode())
            await socket.receive_str()

    async def _pass_on(self, octets: bytes) -> None:
        found = None
        with suppress(RpcError):
            found = jsonrpc.decode(octets)
        await self._write(octets)  # first: who waits for the end closes the output
        if (
            isinstance(found, RpcAnswer)
            and self._waiting.pop(found.id, None) is not None
            and not self._waiting
        ):
            self._idle.set()

    async def _give_up(self, what: str = "rappd is not running.", do: str = "rappd start") -> None:
        for id in list(self._waiting):
            await self._write(jsonrpc.refused(RpcError(_NOT_RUNNING, what, do=do), id))
        self._waiting.clear()
        self._idle.set()

    async def _cancel(self, octets: bytes) -> None:
        params = orjson.loads(octets).get("params") or {}
        if isinstance(params.get("sessionId"), str):
            await self._say(jsonrpc.notification("session/cancel", {"sessionId": params["sessionId"]}))


def run(home: Home) -> None:
    """Serves the editor at stdin and stdout until it closes stdin."""
    asyncio.run(_run(home))


async def _run(home: Home) -> None:
    write = line_writer()

    async def lines() -> AsyncIterator[bytes]:
        while line := await asyncio.to_thread(sys.stdin.buffer.readline, jsonrpc.MOST_BYTES + 1):
            yield line

    connector = aiohttp.UnixConnector(path=str(home.socket))
    async with aiohttp.ClientSession(connector=connector) as session:

        async def connect() -> aiohttp.ClientWebSocketResponse:
            try:
                return await session.ws_connect("http://rappd/acp", max_msg_size=0, compress=0)
            except aiohttp.WSServerHandshakeError:
                async with session.get(
                    "http://rappd/acp"
                ) as answer:  # the handshake's own answer is not to be had
                    found = await answer.json(content_type=None)
                raise NotLetInError(f"{found['error'].rstrip('.')}. {found['do']}") from None

        bridge, loop = AcpBridge(connect, write), asyncio.get_running_loop()
        stopping: list[asyncio.Task[None]] = []

        def interrupted() -> None:
            # Ctrl-C in a terminal reaches this process, too: its editor still has to hear how the prompt ended.
            loop.remove_signal_handler(signal.SIGINT)  # the next one ends it
            stopping.append(asyncio.create_task(bridge.interrupt()))

        loop.add_signal_handler(signal.SIGINT, interrupted)
        await bridge.run(lines())
