"""Requests of a phone's page over its connection: operations by the paths that the page knows, answers in parts.

The phone asks for each part of an answer, so that no more waits for it than it can take; the computer asks for each
part of a long request. A stream of events is one answer, as the text of server-sent events.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, Literal
from urllib.parse import parse_qsl, unquote

import msgspec
import orjson

from envelopes.codecs.bounded_json import bounded_json
from envelopes.codecs.privileged import refuse_privileged
from envelopes.errors import ReportableError
from rappd.daemon.rate_limit import RateLimitedError
from rappd.errors import NotFoundError, RefusedError, UsageProblemError
from rappd.features.operation import Operation, OperationTable, Reader, Stream
from rappd.sessions.participants import caller_of
from rappd.tether.devices import Device

log = logging.getLogger(__name__)

PART = 48_000
"""Characters of a part: a message of ten frames, which a slow phone takes in a second."""
MOST_WAITING = 4 * PART
"""Characters of an answer that wait for the phone; what it is made from stands still meanwhile."""
MOST_OPEN = 12
"""Requests under way, of one phone."""
MOST_BODY = 12 << 20
"""Characters of all requests under way of a phone: four pictures, and those of earlier turns that go along."""
MOST_ARGUMENTS = 64 << 10
"""Octets of a body that holds arguments."""


class Ask(msgspec.Struct, tag="ask", tag_field="type"):
    """A request: its ``text`` is the beginning of the body where there is ``more``, else all of it."""

    id: int
    method: Literal["GET", "POST"]
    path: str
    text: str = ""
    more: bool = False
    last: str = ""
    """The number of the last event that the phone has, for a stream."""


class Part(msgspec.Struct, tag="part", tag_field="type"):
    """The next part of a request's body."""

    id: int
    text: str
    more: bool


class Next(msgspec.Struct, tag="next", tag_field="type"):
    """The phone takes the next part of an answer."""

    id: int


class Drop(msgspec.Struct, tag="drop", tag_field="type"):
    """The phone reads an answer no further. What it asked for goes on."""

    id: int


Frame = Ask | Part | Next | Drop
KINDS = frozenset({"ask", "part", "next", "drop"})


def read_frame(frame: dict[str, Any]) -> Frame | None:
    """The frame, if it is one of a request."""
    try:
        found: Frame = msgspec.convert(frame, type=Frame)
    except msgspec.ValidationError:
        return None
    return found


class RequestTable:
    """The operations that phones may ask for, by method and path."""

    def __init__(self, table: OperationTable) -> None:
        self._rows = [(_pattern(one.path), one, perform) for one, perform in table]

    def find(self, method: str, path: str) -> tuple[Operation, Callable[..., Awaitable[Any]], dict[str, str]]:
        """The operation, and its arguments in the path. Raises ``NotFoundError``."""
        for pattern, one, perform in self._rows:
            if one.method == method and (found := pattern.fullmatch(path)):
                return one, perform, {name: unquote(text) for name, text in found.groupdict().items()}
        raise NotFoundError("There is nothing here.", do="Load the phone's page again.")


class PhoneRequests:
    """The requests of one connection. ``speaker`` is its device as it counts now; ``send`` sends a message."""

    def __init__(
        self, table: RequestTable, speaker: Callable[[], Device], send: Callable[[dict[str, Any]], None]
    ) -> None:
        self._table, self._speaker, self._send = table, speaker, send
        self._open: dict[int, _Request] = {}

    def awaits(self, frame: dict[str, Any]) -> bool:
        """True for a frame that a request waits for: the part that was asked for, or that the phone takes another."""
        id = frame.get("id")
        request = self._open.get(id) if type(id) is int else None
        if request is None:
            return False
        kind = frame.get("type")
        return (kind == "part" and request.wants) or (kind == "next" and request.answer.is_sent)

    def on_frame(self, frame: Frame) -> None:
        """Takes a frame. Those of a request that is over change nothing."""
        request = self._open.get(frame.id)
        if isinstance(frame, Ask):
            if request is None:
                self._begin(frame)
        elif request is None:
            return
        elif isinstance(frame, Part):
            others = sum(one.size for one in self._open.values() if one is not request)
            request.receive(frame, MOST_BODY - others)
        elif isinstance(frame, Next):
            request.answer.take()
        else:
            del self._open[frame.id]
            request.task.cancel()

    def close(self) -> None:
        """Reads no answer further."""
        for request in list(self._open.values()):
            request.task.cancel()

    def _begin(self, ask: Ask) -> None:
        answer = _Answer(ask.id, self._send)
        if len(self._open) >= MOST_OPEN:
            answer.begin(RateLimitedError.status, events=False)
            answer.end(_problem(RateLimitedError("Too many requests at once.", do="Wait for the answers.")))
            return
        request = self._open[ask.id] = _Request(ask, answer, self._send)
        request.task = asyncio.ensure_future(self._perform(request))
        request.task.add_done_callback(lambda _: self._over(request))

    def _over(self, request: _Request) -> None:
        # The id of one that was dropped may be another's by now.
        if self._open.get(request.ask.id) is request:
            del self._open[request.ask.id]

    async def _perform(self, request: _Request) -> None:
        answer = request.answer
        try:
            found = await self._asked(request)
        except ReportableError as problem:
            answer.begin(problem.status, events=False)
            answer.end(_problem(problem))
        except Exception:
            log.exception("%s %s of a phone failed", request.ask.method, request.ask.path[:200])
            answer.begin(500, events=False)
            answer.end('{"error": "Something went wrong inside; the log has it.", "code": "failed"}')
        else:
            answer.begin(200, events=isinstance(found, Stream))
            if isinstance(found, Stream):
                async with aclosing(found.events) as events:
                    async for number, event in events:
                        await answer.add(_event(number, event))
                answer.end()
            else:
                answer.end(orjson.dumps(found, default=str).decode())
        await answer.taken()

    async def _asked(self, request: _Request) -> Any:
        ask = request.ask
        path, _, query = ask.path.partition("?")
        one, perform, in_path = self._table.find(ask.method, path)
        device = self._speaker()
        if not one.right.admits(caller_of(device)):
            raise RefusedError("This phone may only listen.", do="Ask its owner: rappd devices scopes")
        body = await request.body()
        sent = _object(body) if one.has_body else {}
        given = one.read({**dict(parse_qsl(query)), **sent, **in_path}, as_text=not one.has_body)
        known = {Device: device, Reader: Reader(ask.last, lambda: not request.task.done()), bytes: body}
        return await perform(**given, **{name: known[kind] for name, kind in one.of_request.items()})


class _Request:
    """A request under way, whose body may come in parts."""

    task: asyncio.Task[None]

    def __init__(self, ask: Ask, answer: _Answer, send: Callable[[dict[str, Any]], None]) -> None:
        self.ask, self.answer, self._send = ask, answer, send
        self._parts = [ask.text]
        self.size = len(ask.text)
        self._whole: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.wants = False
        """True while a part is asked for."""
        if not ask.more:
            self._whole.set_result(None)

    def receive(self, part: Part, most: int) -> None:
        """Takes a part that was asked for; all of them have ``most`` characters at most."""
        if not self.wants or self._whole.done():
            return
        self.wants = False
        self._parts.append(part.text)
        self.size += len(part.text)
        if self.size > most:
            self._whole.set_exception(
                UsageProblemError(
                    "That is too much to be sent at once.", do="Send fewer or smaller pictures."
                )
            )
        elif part.more:
            self._want()
        else:
            self._whole.set_result(None)

    async def body(self) -> bytes:
        """All of it. Raises ``UsageProblemError`` for one that is too large."""
        if self.ask.more:
            self._want()
        await self._whole
        return "".join(self._parts).encode(errors="replace")

    def _want(self) -> None:
        self.wants = True
        self._send({"type": "next", "id": self.ask.id})


class _Answer:
    """An answer on its way: the first part goes at once, each further one when the phone takes it."""

    def __init__(self, id: int, send: Callable[[dict[str, Any]], None]) -> None:
        self._id, self._send = id, send
        self._head: dict[str, Any] = {}
        self._text = ""
        self._wanted, self._over, self._sent_all = True, False, False
        self._moved = asyncio.Event()

    def begin(self, status: int, *, events: bool) -> None:
        """Says how it ended, and if a stream of events follows."""
        self._head = {"status": status, "events": events}
        if events:
            self._flush(at_once=True)

    async def add(self, text: str) -> None:
        """Adds text, and waits until there is room for more."""
        self._text += text
        self._flush()
        while len(self._text) > MOST_WAITING:
            self._moved.clear()
            await self._moved.wait()

    def end(self, text: str = "") -> None:
        """Adds the last text."""
        self._text += text
        self._over = True
        self._flush()

    @property
    def is_sent(self) -> bool:
        """True from a part that was sent until the phone takes the next one."""
        return not self._wanted and not self._sent_all

    def take(self) -> None:
        """The phone takes the next part."""
        self._wanted = True
        self._flush()

    async def taken(self) -> None:
        """Waits until the last part is sent."""
        while not self._sent_all:
            self._moved.clear()
            await self._moved.wait()

    def _flush(self, *, at_once: bool = False) -> None:
        if not self._wanted or self._sent_all or not (self._text or self._over or at_once):
            return
        part, self._text = self._text[:PART], self._text[PART:]
        self._wanted = False
        self._sent_all = self._over and not self._text
        self._send({"type": "reply", "id": self._id, **self._head, "text": part, "more": not self._sent_all})
        self._head = {}
        self._moved.set()


def _pattern(path: str) -> re.Pattern[str]:
    parts = re.split(r"\{(\w+)\}", path)  # texts and names, by turns
    return re.compile(
        "".join(f"(?P<{part}>[^/]+)" if at % 2 else re.escape(part) for at, part in enumerate(parts))
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = bounded_json(body, most_bytes=MOST_ARGUMENTS)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise UsageProblemError("The body is no JSON object.", do="Send {…}.")
    refuse_privileged(found, listener="for phones")
    return found


def _event(number: int | None, event: bytes | dict[str, Any]) -> str:
    data = event if isinstance(event, bytes) else orjson.dumps(event, default=str)
    head = "" if number is None else f"id: {number}\n"
    return f"{head}data: {data.decode()}\n\n"


def _problem(problem: ReportableError) -> str:
    return orjson.dumps(problem.as_json()).decode()
