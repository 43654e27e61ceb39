"""A line of a machine that is no rappd: it answers when the daemon asks whether it is there; all else is read."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp

from tests.rappd.federation.plain_machine import Json, PlainMachine


class PlainLine:
    """The machine's side. A daemon ends a line on which its HELLO is met by silence."""

    def __init__(self, machine: PlainMachine, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._machine, self._socket = machine, socket
        self._heard: asyncio.Queue[aiohttp.WSMessage] = asyncio.Queue()
        self._greeted: set[str] = set()
        self.send_bytes = socket.send_bytes

    async def send(self, envelope: Json) -> None:
        if envelope.get("verb") == "HELLO":
            self._greeted.add(str(envelope.get("id")))
        await self.send_str(json.dumps(envelope))

    async def send_str(self, text: str) -> None:
        await self._socket.send_str(text)

    async def receive(self) -> aiohttp.WSMessage:
        """The next thing said that is no HELLO of the daemon's own."""
        return await self._heard.get()

    async def hear(self) -> Json:
        """The same, an envelope."""
        message = await self.receive()
        assert message.type is aiohttp.WSMsgType.TEXT, f"the line ended: {message}"
        found: Json = json.loads(message.data)
        return found

    async def read(self) -> None:
        """Reads until the line ends; its end is the last thing that was said."""
        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.TEXT:
                said = json.loads(message.data)
                for one in said if isinstance(said, list) else [said]:
                    if one["verb"] != "HELLO" or one["id"] in self._greeted:
                        self._heard.put_nowait(message._replace(data=json.dumps(one)))
                        continue
                    with suppress(ConnectionError):
                        await self.send_str(json.dumps(self._machine.answer(one)))
                continue
            self._heard.put_nowait(message)
            if message.type in (
                aiohttp.WSMsgType.CLOSE,
                aiohttp.WSMsgType.CLOSING,
                aiohttp.WSMsgType.CLOSED,
                aiohttp.WSMsgType.ERROR,
            ):
                return


@asynccontextmanager
async def line_of(
    machine: PlainMachine, protocol: str = "rappd.1", *, offers: tuple[str, ...] = ()
) -> AsyncIterator[PlainLine]:
    """Connects a machine to the daemon for the block. It ``offers`` subprotocols, and ``protocol`` is agreed on."""
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(
            f"https://{machine.daemon_address}/line", ssl=machine.context(), protocols=offers or (protocol,)
        ) as socket,
    ):
        assert socket.protocol == protocol
        line = PlainLine(machine, socket)
        reading = asyncio.create_task(line.read())
        try:
            yield line
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
