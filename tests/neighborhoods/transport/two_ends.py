"""A line with both its ends in the test, on a pipe with the shape of a WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import aiohttp
import orjson

from envelopes.codecs.emergence import from_object
from envelopes.envelope import ACK, DONE, HELLO, HELP, Envelope, new_id
from envelopes.errors import MalformedError
from neighborhoods.transport.peer_connection import Answer, PeerConnection

HERE, THERE = "brainstem_0000000000000001", "brainstem_0000000000000002"


class End:
    """An end of a pipe with the shape of a WebSocket."""

    def __init__(self) -> None:
        self.incoming: asyncio.Queue[aiohttp.WSMessage] = asyncio.Queue()
        self.other: End | None = None
        self.closed = False
        self.frames: list[bytes] = []
        self.before: Callable[[], Awaitable[object]] | None = None  # each frame
        self.sent: list[Envelope] = []

    async def send_frame(self, message: bytes, opcode: aiohttp.WSMsgType = aiohttp.WSMsgType.TEXT) -> None:
        if self.before is not None:
            await self.before()
        if self.closed:
            raise ConnectionResetError
        self.frames.append(message)
        with suppress(ValueError, MalformedError):
            found = orjson.loads(message)
            self.sent += map(from_object, found if isinstance(found, list) else [found])
        assert self.other is not None
        self.other.incoming.put_nowait(aiohttp.WSMessage(opcode, message, None))

    async def receive(self) -> aiohttp.WSMessage:
        return await self.incoming.get()

    async def close(self, *, code: int = 1000) -> None:
        if not self.closed:
            self.closed = True
            assert self.other is not None
            self.other.closed = True
            for end in (self, self.other):
                end.incoming.put_nowait(aiohttp.WSMessage(aiohttp.WSMsgType.CLOSED, None, None))


class Both:
    def __init__(self, here: Answer, there: Answer, *, protocol: str = "rappd.2") -> None:
        self.ends = End(), End()
        self.ends[0].other, self.ends[1].other = self.ends[1], self.ends[0]
        self.here = PeerConnection(self.ends[0], here, name="pi", protocol=protocol)
        self.there = PeerConnection(self.ends[1], there, name="desk", protocol=protocol)
        self.tasks = [asyncio.ensure_future(line.run()) for line in (self.here, self.there)]

    async def __aenter__(self) -> Both:
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.here.close()
        await asyncio.gather(*self.tasks)

    async def quiet(self) -> int:
        """The number of frames, once nothing more is said."""
        count = -1
        while count != (count := len(self.ends[0].sent) + len(self.ends[1].sent)):
            await asyncio.sleep(0.05)
        return count


async def like_a_daemon(envelope: Envelope) -> Envelope | None:
    match envelope.verb:
        case "HELP":
            return envelope.reply(DONE, {"result": envelope.data.get("n")})
        case "HELLO":
            return envelope.reply(HELLO, {})
        case "ACK" | "STREAM":
            return envelope.reply(ACK, {})  # wrongly; the line does not let it go on
        case "ERROR":
            return envelope.refusal(403, "no", "refused")
    return envelope.reply(ACK, {})


def asked(verb: str = HELP, **data: Any) -> Envelope:
    return Envelope(new_id(), HERE, THERE, verb, data)
