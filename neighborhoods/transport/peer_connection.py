"""One WebSocket between two machines, on which each may ask the other at any time.

Every frame is one envelope, or, with ``rappd.2``, an array of several: all messages of one event loop iteration make
one frame, and the reply to the only active request is sent at once. A reply carries the id of what it answers, so
that many are under way at once, in any order; whatever answers nothing that was asked here is a request of the other
side. To an ACK nothing is said, and to an ERROR never another: else two machines would go on for ever.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol

import aiohttp
from aiohttp import WSMsgType
from msgspec.structs import replace

from envelopes.codecs import wire
from envelopes.codecs.emergence import MAX_BYTES, encode
from envelopes.envelope import ACK, CANCEL, DONE, ERROR, HELLO, HELP, STREAM, Envelope
from envelopes.errors import MalformedError, ReportableError
from neighborhoods.errors import PeerFailedError, PeerOfflineError
from neighborhoods.transport.replies import StreamedReply, fitting

log = logging.getLogger(__name__)

SEVERAL, PLAIN = "rappd.2", "rappd.1"
PROTOCOLS = (SEVERAL, PLAIN)
"""Subprotocols, the best first."""
HEARTBEAT = 10.0
GOING_AWAY = aiohttp.WSCloseCode.GOING_AWAY
"""The close code of a machine that stops."""
MOST_AT_ONCE = 256
"""Requests of the other side that are worked on at once; whatever comes beyond is told to come later."""
MOST_KNOWN = 1024
"""Ids that were lately asked or answered here."""

Answer = Callable[[Envelope], Awaitable[Envelope | None]]
"""Works on a request; None when nothing is to be said back. The reply may be ``StreamedReply``."""
OnStream = Callable[[Envelope], None]
MAX_FRAME = MAX_BYTES
TOGETHER = 32
"""Envelopes in a frame. With more, each machine would stand still until the other is done with all of them."""
MUCH = 64
"""Unsent envelopes; further senders wait."""

LAST_SECONDS = 0.2


class Socket(Protocol):
    """The common part of aiohttp's WebSockets of both sides."""

    @property
    def closed(self) -> bool:
        """True once it ended."""
        ...

    async def send_frame(self, message: bytes, opcode: aiohttp.WSMsgType) -> None:
        """Writes one frame."""
        ...

    async def receive(self) -> Any:
        """Reads one: a ``WSMessage``, text as bytes."""
        ...

    async def close(self, *, code: int = aiohttp.WSCloseCode.OK) -> Any:
        """Sends a close frame and waits for the other side's."""
        ...


class PeerConnection:
    """One side of a line.

    ``run`` reads it until it ends; ``ask`` may be called from then on. ``protocol`` is the subprotocol that
    was agreed on.
    """

    def __init__(self, socket: Socket, answer: Answer, *, name: str, protocol: str | None) -> None:
        self._socket = socket
        self._speaking = FrameWriter(socket, several=protocol == SEVERAL, failed=self._fail_asked)
        self._answer = answer
        self._name = name
        self._asked: dict[str, asyncio.Future[Envelope]] = {}
        self._streams: dict[str, OnStream] = {}
        self._known: dict[str, None] = {}
        self._working: dict[asyncio.Task[None], Envelope] = {}
        self.heard = 0
        """The number of received messages. (The loop's clock stands still within one of its iterations.)"""
        self.left = False
        """True once the other side closed it because that machine stops."""
        self.lost = False
        """True once it ended in another way, and not by this side."""
        self._close_code = 0

    @property
    def open(self) -> bool:
        """True while something can be sent."""
        return not self._socket.closed

    async def ask(
        self,
        envelope: bytes,
        id: str,
        *,
        wait: float,
        on_stream: OnStream | None = None,
    ) -> Envelope:
        """Sends a request and waits for its reply, which may write ``id`` in capitals.

        Raises ``PeerOfflineError`` when the line ended or nothing came in time, ``PeerFailedError`` when what
        came is no reply.
        """
        key = id.lower()
        if key in self._asked:
            raise PeerOfflineError(f"{self._name} is being asked that already.", maybe_sent=True)
        if self._socket.closed:
            raise PeerOfflineError(f"{self._name} is away.", maybe_sent=True)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Envelope] = loop.create_future()
        self._asked[key] = future
        if on_stream is not None:
            self._streams[key] = on_stream
        late = loop.call_later(wait, self._late, future, wait)  # asyncio.timeout takes three times as long
        try:
            self._speaking.say(envelope)
            reply = await future
            return reply if reply.id == id else replace(reply, id=id)
        finally:
            late.cancel()
            self._asked.pop(key, None)
            self._streams.pop(key, None)
            self._remember(key)

    async def tell(self, octets: bytes) -> None:
        """Sends what needs no answer; a line that ended swallows it."""
        if not self._socket.closed:
            alone = len(self._asked) + len(self._working) <= 1  # so nobody else has anything to say now
            self._speaking.say(octets, alone=alone)
            await self._speaking.room()

    async def run(self) -> None:
        """Reads until the other side, or this one, ends the line."""
        try:
            while True:
                message = await self._socket.receive()
                self.heard += 1
                if message.type in _WORDS:
                    await self._hear(message.data)
                elif message.type in _ENDS:
                    self.left = message.type == aiohttp.WSMsgType.CLOSE and message.data == GOING_AWAY
                    self.lost = not (self.left or self._close_code)
                    return
        finally:
            await self.close()

    async def close(self, code: int = aiohttp.WSCloseCode.OK) -> None:
        """Closes the connection with the code of the first caller; waiting callers get an error."""
        code = self._close_code = self._close_code or code
        self._fail_asked()
        for task in list(self._working):
            task.cancel()
        await self._speaking.finish()
        with suppress(ConnectionError, RuntimeError):
            await self._socket.close(code=code)

    def _fail_asked(self) -> None:
        for future in self._asked.values():
            if not future.done():
                future.set_exception(PeerOfflineError(f"{self._name} is away.", maybe_sent=True))
                future.exception()  # nobody may be waiting any more

    def _late(self, future: asyncio.Future[Envelope], wait: float) -> None:
        if not future.done():
            trouble = f"{self._name} did not answer within {wait:g} s."
            future.set_exception(PeerOfflineError(trouble, maybe_sent=True))

    async def _hear(self, raw: bytes) -> None:
        try:
            if raw.startswith(b"["):
                found = wire.decode_batch(raw, max_bytes=MAX_FRAME)
            else:
                found = [wire.decode(raw, max_bytes=MAX_FRAME)]
        except MalformedError as problem:
            found = [problem]
        for one in found:
            if isinstance(one, MalformedError):
                self._give_up(one.id, f"{self._name} answered with something that is no envelope: {one}")
                await self.tell(encode(wire.refusal_of(one, sender=wire.NOBODY)))
            else:
                await self._read(one)
        if len(found) > 1:
            await asyncio.sleep(0)  # these begin before more is read

    def _give_up(self, id: str, why: str) -> None:
        """Ends the wait for a reply that came and cannot be read; the reader's refusal would be answered instead."""
        future = self._asked.get(id.lower())
        if future is not None and not future.done():
            future.set_exception(PeerFailedError(why))
            future.exception()  # nobody may be waiting any more

    async def _read(self, envelope: Envelope) -> None:
        key = envelope.id.lower()
        if envelope.verb == STREAM:
            if (listener := self._streams.get(key)) is not None:
                listener(envelope)
            return
        future = self._asked.get(key)
        if future is not None and envelope.verb in _REPLIES:
            # A DONE may follow its ACK at once: it is no reply any more, but the answer that comes later.
            del self._asked[key]
            self._remember(key)
            if not future.done():
                future.set_result(envelope)
            return
        if future is not None and envelope.verb != CANCEL:
            self._give_up(key, f"{self._name} answered with {envelope.verb}, which is no answer.")
            return
        if envelope.verb == ACK or (envelope.verb == HELLO and key in self._known):
            return  # a HELLO that answers looks like one that asks
        if envelope.verb == HELLO:
            self._remember(key)
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
        except ReportableError as problem:
            reply = _refused(envelope, problem)
        except Exception:
            log.exception("a request of %s failed", self._name)
            reply = envelope.refusal(500, "Something went wrong inside.", "failed")
        if isinstance(reply, StreamedReply):
            async for _, piece in reply.pieces():
                await self.tell(fitting(piece))
        elif reply is not None and not self._is_said_otherwise(envelope, reply):
            await self.tell(fitting(reply))

    def _is_said_otherwise(self, envelope: Envelope, reply: Envelope) -> bool:
        """True for a reply that must not be sent: to an ERROR, or to the CANCEL of what is answered here."""
        if envelope.verb == ERROR:
            return reply.verb == ERROR
        return envelope.verb == CANCEL and any(
            one.verb == HELP and one.id.lower() == envelope.id.lower() for one in self._working.values()
        )

    def _worked(self, task: asyncio.Task[None]) -> None:
        del self._working[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a request of %s failed", self._name, exc_info=error)


def _refused(envelope: Envelope, problem: ReportableError) -> Envelope:
    reply = envelope.refusal(problem.status, str(problem), problem.code)
    if problem.do:
        reply.data["do"] = problem.do
    return reply


_WORDS = (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY)
_REPLIES = (ACK, DONE, ERROR, HELLO)
_ENDS = (
    aiohttp.WSMsgType.CLOSE,
    aiohttp.WSMsgType.CLOSING,
    aiohttp.WSMsgType.CLOSED,
    aiohttp.WSMsgType.ERROR,
)


class FrameSink(Protocol):
    """The WebSocket methods that writing needs."""

    async def send_frame(self, message: bytes, opcode: WSMsgType) -> None:
        """Writes one frame."""
        ...


class FrameWriter:
    """One side's words.

    ``several``: the other side takes arrays; of ``TOGETHER`` envelopes and ``MAX_FRAME`` bytes at most, then.
    Else each envelope is a frame. ``failed()`` is told when nothing can be said any more.
    """

    def __init__(self, socket: FrameSink, *, several: bool, failed: Callable[[], None]) -> None:
        self._socket = socket
        self._most = TOGETHER if several else 1
        self._failed = failed
        self._unsaid: deque[bytes] = deque()
        self._speaking: asyncio.Task[None] | None = None

    def say(self, octets: bytes, *, alone: bool = False) -> None:
        """Sends it soon, after all that was said before.

        ``alone``: nothing else will be said in this round of the event loop, so it need not wait for that.
        """
        self._unsaid.append(octets)
        if self._speaking is not None:
            return
        speaking = self._speak()
        if alone:
            try:
                waits_for = speaking.send(None)
            except StopIteration:
                return
            speaking = _going_on(speaking, waits_for)
        self._speaking = asyncio.get_running_loop().create_task(speaking)

    async def room(self) -> None:
        """Returns when not too much is unsaid: a slow listener holds up who speaks."""
        while self._speaking is not None and len(self._unsaid) > MUCH:
            await asyncio.wait({self._speaking})

    async def finish(self) -> None:
        """Lets go out what was said, if that is a matter of moments."""
        if self._speaking is not None:
            await asyncio.wait({self._speaking}, timeout=LAST_SECONDS)

    async def _speak(self) -> None:
        try:
            while self._unsaid:
                await self._socket.send_frame(self._frame(), WSMsgType.TEXT)
        except (ConnectionError, RuntimeError):  # the latter where this side closed it
            self._failed()
        finally:
            self._unsaid.clear()
            self._speaking = None

    def _frame(self) -> bytes:
        first = self._unsaid.popleft()
        if self._most == 1 or not self._unsaid:
            return first
        together, size = [first], len(first) + 2
        while self._unsaid and len(together) < self._most:
            octets = self._unsaid[0]
            size += len(octets) + 1
            if size > MAX_FRAME:
                break
            together.append(octets)
            self._unsaid.popleft()
        return b"[%b]" % b",".join(together) if len(together) > 1 else first


async def _going_on(begun: Coroutine[Any, Any, None], waits_for: Any) -> None:
    """Ends what was begun outside of a task and has to wait (for a future, or for a round of the loop)."""
    try:
        while True:
            await (asyncio.sleep(0) if waits_for is None else asyncio.wait({waits_for}))
            waits_for = begun.send(None)
    except StopIteration:
        return
    finally:
        begun.close()
