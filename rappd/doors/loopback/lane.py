"""The short way of ``POST /chat``: a connection that brings plain turns alone needs no web framework."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from email.utils import formatdate
from http import HTTPStatus
from typing import cast

import orjson
from aiohttp import web
from aiohttp.http import SERVER_SOFTWARE

from envelopes.problem import ReportableError
from rappd.dispatch.context import Caller
from rappd.doors.answer import JSON
from rappd.doors.keys import HOUSE
from rappd.doors.loopback import chat
from rappd.doors.request_timeout import (
    Arrival,
    Sweep,
    TimedRequestHandler,
    TimedRunner,
    TimedServer,
    close_late,
)
from rappd.doors.tenant import HOSTS, TENANT

log = logging.getLogger(__name__)

LARGEST = 64 << 10
"""Longer requests go the long way. No ``door.body_mb`` is less."""
IDLE_SECONDS = 3600.0
LEAVE_SECONDS = 3.0

_START = b"POST /chat HTTP/1.1\r\n"
_KNOWN = frozenset(
    {
        *("host", "content-length", "content-type", "connection", "user-agent"),
        *("accept", "accept-encoding", "accept-language"),
    }
)
_ANYBODY, _OPERATOR = Caller("loopback"), Caller("loopback", operator=True)
_FAILED = {"error": "Something went wrong inside; the log has it.", "do": "rappd logs", "code": "failed"}


class ChatSite(web.SockSite):
    """Serves a runner's application at a socket of this machine, plain turns by the short way.

    A connection that brings anything else (another path, an ``Origin``, a cookie, a host name of others,
    any field not known here, a request in odd shape) is the application's from then on.
    """

    def __init__(self, runner: TimedRunner, sock: socket.socket, *, backlog: int = 128) -> None:
        super().__init__(runner, sock, backlog=backlog)
        app = runner.app
        self._long_way = runner
        self._house, self._tenant, self._hosts = app[HOUSE], app[TENANT], app[HOSTS]
        self._turns: dict[Lane, asyncio.Task[None]] = {}
        self._date = (0, "")
        self.lanes: set[Lane] = set()
        self.closing = False
        self._sweep = Sweep()

    async def start(self) -> None:
        """Listens."""
        await web.BaseSite.start(self)
        self._server = await asyncio.get_running_loop().create_server(
            lambda: Lane(self), sock=self._sock, backlog=self._backlog
        )
        self._sweep.start(self.lanes)

    async def stop(self) -> None:
        """Listens no more, and gives turns under way a moment to be answered."""
        await super().stop()
        await self._sweep.stop()
        await asyncio.sleep(0)  # what was read already begins
        self.closing = True
        for lane in list(self.lanes):
            lane.close_if_idle()
        if self._turns:
            _, late = await asyncio.wait(self._turns.values(), timeout=LEAVE_SECONDS)
            for turn in late:
                turn.cancel()

    def framework(self) -> TimedRequestHandler:
        """What serves a connection that does not stay in its lane."""
        assert isinstance(self._long_way.server, TimedServer)
        return self._long_way.server()

    def knows(self, host: str) -> bool:
        """Whether the door answers to this name."""
        return host in self._hosts.names()

    def begin(self, lane: Lane, body: bytes) -> None:
        """Performs a turn for a lane, which is told the whole response."""
        self._turns[lane] = asyncio.get_running_loop().create_task(self._perform(lane, body))

    async def _perform(self, lane: Lane, body: bytes) -> None:
        try:
            caller = _OPERATOR if self._house.open_surface else _ANYBODY
            status, answer = await chat.answer(self._house, self._tenant, caller, body)
        except asyncio.CancelledError:
            lane.abort()
            raise
        except ReportableError as found:
            status, answer = found.status, orjson.dumps(found.as_json(), default=str)
        except Exception:
            log.exception("POST /chat failed")
            status, answer = 500, orjson.dumps(_FAILED)
        finally:
            del self._turns[lane]
        lane.answered(self._head(status, len(answer)) + answer)

    def _head(self, status: int, size: int) -> bytes:
        now = int(time.time())
        if self._date[0] != now:
            self._date = now, formatdate(now, usegmt=True)
        return (
            f"HTTP/1.1 {status} {_PHRASES.get(status, '')}\r\nContent-Type: {JSON}\r\nContent-Length: {size}\r\n"
            f"Date: {self._date[1]}\r\nServer: {SERVER_SOFTWARE}\r\n\r\n"
        ).encode()


class Lane(asyncio.Protocol):
    """One connection, as long as it brings one plain ``POST /chat`` after the other."""

    __slots__ = (
        "_arrival",
        "_busy",
        "_head",
        "_held",
        "_host",
        "_idling",
        "_site",
        "_size",
        "_transport",
        "_used",
    )

    def __init__(self, site: ChatSite) -> None:
        self._site = site
        self._busy = False
        self._held = b""
        self._used = False
        self._head, self._host, self._size = b"", "", -1
        self._arrival: Arrival | None = None  # of a request that is not whole yet

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none by inheritance
        self._site.lanes.add(self)
        self._arrival = Arrival(asyncio.get_running_loop().time())
        self._look_again()

    def connection_lost(self, exc: Exception | None) -> None:
        self._leave()

    def pause_writing(self) -> None:
        self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._transport.resume_reading()

    def data_received(self, data: bytes) -> None:
        held = self._held
        if held:
            data = held + data
        if self._busy:  # it sends ahead: seen to after the answer
            self._held = data
            self._transport.pause_reading()
            return
        end = data.find(b"\r\n\r\n") + 4
        size = self._length(data[: end - 4]) if end > 4 and data.startswith(_START) else -1
        if size < 0 or end + size > LARGEST or len(data) > end + size:
            self._hand_over(data)
        elif len(data) < end + size:
            self._held = data
            if self._arrival is None:
                self._arrival = Arrival(asyncio.get_running_loop().time())
        else:
            self._held, self._arrival = b"", None
            self._busy = self._used = True
            self._site.begin(self, data[end:])

    def answered(self, response: bytes) -> None:
        """The turn is over."""
        self._busy = False
        if self._transport.is_closing():
            return
        self._transport.write(response)
        if self._held:
            self._transport.resume_reading()
            data, self._held = self._held, b""
            self._hand_over(data)
        else:
            self.close_if_idle()

    def abort(self) -> None:
        """The turn was given up."""
        self._transport.abort()

    def close_if_idle(self) -> None:
        """When the door closes."""
        if self._site.closing and not self._busy:
            self._transport.close()

    def close_if_late(self, now: float) -> None:
        """Ends the connection when the request that it brings is late."""
        if self._arrival is None or self._busy or self._transport.is_closing():
            return
        held = self._held
        if self._arrival.is_late(now, len(held), body=b"\r\n\r\n" in held):
            close_late(self._transport, answer=bool(held))

    def _length(self, head: bytes) -> int:
        """How long the body is; -1 when this is no plain request to this door."""
        if head != self._head:  # mostly, one client says the same each time
            self._head, (self._host, self._size) = head, _read_head(head)
        return self._size if self._site.knows(self._host) else -1

    def _hand_over(self, data: bytes) -> None:
        self._leave()
        if self._site.closing:
            self._transport.close()
            return
        protocol = self._site.framework()
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        if self._arrival is not None:
            protocol.continue_arrival(self._arrival)
        protocol.data_received(data)

    def _look_again(self) -> None:
        """Closes what nobody used for long."""
        self._used = False
        self._idling = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._look)

    def _look(self) -> None:
        if self._used or self._busy:
            self._look_again()
        else:
            self._transport.close()

    def _leave(self) -> None:
        self._idling.cancel()
        self._site.lanes.discard(self)


def _read_head(head: bytes) -> tuple[str, int]:
    """The host's name and how long the body is; -1 when it is no plain request."""
    try:
        lines = head.decode("ascii").split("\r\n")[1:]
        fields = dict([line.split(": ", 1) for line in lines])
    except ValueError:
        return "", -1
    fields = {name.lower(): value for name, value in fields.items()}
    length = fields.get("content-length", "")
    plain = (
        fields.keys() <= _KNOWN
        and len(fields) == len(lines)
        and all(map(str.isprintable, lines))
        and fields.get("connection", "keep-alive").lower() == "keep-alive"
        and length.isdecimal()
        and len(length) < 9
    )
    return fields.get("host", ""), int(length) if plain else -1


_PHRASES = {status.value: status.phrase for status in HTTPStatus}
