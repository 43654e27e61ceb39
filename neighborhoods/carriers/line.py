"""A line: one WebSocket between two machines, on which each may ask the other at any time.

Every text frame is one envelope. A reply carries the id of what it answers, so that many are under way at
once, in any order; whatever answers nothing that was asked here is a request of the other side. To an ACK
nothing is said, and to an ERROR never another: else two machines would go on for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol

import aiohttp

from envelopes import wire
from envelopes.emergence import MAX_BYTES, encode
from envelopes.errors import Malformed
from envelopes.problem import Problem
from envelopes.record import ACK, CANCEL, DONE, ERROR, HELLO, HELP, STREAM, Envelope
from neighborhoods.carriers.fitting import fitting
from neighborhoods.errors import PeerAway

log = logging.getLogger(__name__)

PROTOCOL = "rappd.1"
HEARTBEAT = 10.0
MOST_AT_ONCE = 256
"""Requests of the other side that are worked on at once; whatever comes beyond is told to come later."""
MOST_KNOWN = 1024
"""Ids that were lately asked or answered here."""
MAX_FRAME = MAX_BYTES

Answer = Callable[[Envelope], Awaitable[Envelope | None]]
"""Works on a request; None when nothing is to be said back, ``Streamed`` when several things are."""
Pieces = Callable[[], AsyncIterator[tuple[int, Envelope]]]
OnStream = Callable[[Envelope], None]


class Streamed(Envelope, frozen=True, kw_only=True):
    """A reply in pieces: itself it says that work began; ``pieces()`` gives numbered STREAMs, then the end."""

    pieces: Pieces


class Socket(Protocol):
    """What aiohttp's WebSockets of both sides have in common."""

    @property
    def closed(self) -> bool:
        """Whether it ended."""
        ...

    async def send_str(self, data: str) -> None:
        """Writes one frame."""
        ...

    async def receive(self) -> aiohttp.WSMessage:
        """Reads one."""
        ...

    async def close(self) -> Any:
        """Says goodbye."""
        ...


class Line:
    """One side of a line. ``run`` reads it until it ends; ``ask`` may be called from then on."""

    def __init__(self, socket: Socket, answer: Answer, *, name: str) -> None:
        self._socket = socket
        self._answer = answer
        self._name = name
        self._asked: dict[str, asyncio.Future[Envelope]] = {}
        self._streams: dict[str, OnStream] = {}
        self._known: dict[str, None] = {}
        self._working: dict[asyncio.Task[None], Envelope] = {}
        self.heard = 0
        """How often the other side said something. (The loop's clock stands still within one of its rounds.)"""

    @property
    def open(self) -> bool:
        """Whether something can be said."""
        return not self._socket.closed

    async def ask(
        self, envelope: bytes, id: str, *, wait: float, on_stream: OnStream | None = None
    ) -> Envelope:
        """Sends a request and waits for its reply. ``PeerAway``: the line ended, or nothing came in time."""
        if id in self._asked:
            raise PeerAway(f"{self._name} is being asked that already.", maybe_sent=True)
        future: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self._asked[id] = future
        if on_stream is not None:
            self._streams[id] = on_stream
        try:
            async with asyncio.timeout(wait):
                try:
                    await self._socket.send_str(envelope.decode())
                except (ConnectionError, RuntimeError) as error:
                    raise PeerAway(f"{self._name} is away.", maybe_sent=True) from error
                return await future
        except TimeoutError as error:
            raise PeerAway(f"{self._name} did not answer within {wait:g} s.", maybe_sent=True) from error
        finally:
            self._asked.pop(id, None)
            self._streams.pop(id, None)
            self._remember(id)

    async def tell(self, envelope: bytes) -> None:
        """Sends what needs no answer; a line that ended swallows it."""
        with suppress(ConnectionError, RuntimeError):
            await self._socket.send_str(envelope.decode())

    async def run(self) -> None:
        """Reads until the other side, or this one, ends the line."""
        try:
            while True:
                message = await self._socket.receive()
                self.heard += 1
                if message.type is aiohttp.WSMsgType.TEXT:
                    await self._read(message.data.encode())
                elif message.type is aiohttp.WSMsgType.BINARY:
                    await self._read(message.data)
                elif message.type in _ENDS:
                    return
        finally:
            await self.close()

    async def close(self) -> None:
        """Ends the line; whoever waits on it is told."""
        for future in self._asked.values():
            if not future.done():
                future.set_exception(PeerAway(f"{self._name} is away.", maybe_sent=True))
                future.exception()  # nobody may be waiting any more
        for task in list(self._working):
            task.cancel()
        with suppress(ConnectionError, RuntimeError):
            await self._socket.close()

    async def _read(self, raw: bytes) -> None:
        try:
            envelope = wire.decode(raw, max_bytes=MAX_FRAME)
        except Malformed as problem:
            await self.tell(encode(wire.refusal_of(problem, sender=wire.NOBODY)))
            return
        if envelope.verb == STREAM:
            if (listener := self._streams.get(envelope.id)) is not None:
                listener(envelope)
            return
        future = self._asked.get(envelope.id)
        if future is not None and envelope.verb in _REPLIES:
            if not future.done():
                future.set_result(envelope)
            return
        if envelope.verb == ACK or (envelope.verb == HELLO and envelope.id in self._known):
            return  # a HELLO that answers looks like one that asks
        if envelope.verb == HELLO:
            self._remember(envelope.id)
        if len(self._working) >= MOST_AT_ONCE:
            await self.tell(encode(envelope.refusal(503, "Too much is asked at once.", "busy")))
            return
        task = asyncio.get_running_loop().create_task(self._work(envelope))
        self._working[task] = envelope
        task.add_done_callback(self._worked)

    def _remember(self, id: str) -> None:
        self._known[id] = None
        while len(self._known) > MOST_KNOWN:
            del self._known[next(iter(self._known))]

    async def _work(self, envelope: Envelope) -> None:
        try:
            reply = await self._answer(envelope)
        except Problem as problem:
            reply = envelope.refusal(problem.status, str(problem), problem.code)
            if problem.do:
                reply.data["do"] = problem.do
        except Exception:
            log.exception("a request of %s failed", self._name)
            reply = envelope.refusal(500, "Something went wrong inside.", "failed")
        if isinstance(reply, Streamed):
            async for _, piece in reply.pieces():
                await self.tell(fitting(piece))
        elif reply is not None and not self._is_said_otherwise(envelope, reply):
            await self.tell(fitting(reply))

    def _is_said_otherwise(self, envelope: Envelope, reply: Envelope) -> bool:
        """Whether a reply would be one too many: to an ERROR, or to the CANCEL of what is answered here."""
        if envelope.verb == ERROR:
            return reply.verb == ERROR
        return envelope.verb == CANCEL and any(
            one.verb == HELP and one.id == envelope.id for one in self._working.values()
        )

    def _worked(self, task: asyncio.Task[None]) -> None:
        del self._working[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a request of %s failed", self._name, exc_info=error)


_REPLIES = (ACK, DONE, ERROR, HELLO)
_ENDS = (
    aiohttp.WSMsgType.CLOSE,
    aiohttp.WSMsgType.CLOSING,
    aiohttp.WSMsgType.CLOSED,
    aiohttp.WSMsgType.ERROR,
)
