"""Requests of foreign programs over HTTP, whatever their protocol: the body, errors in the client's shape, clients that hang up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from aiohttp import web

from envelopes.errors import ReportableError
from rappd.dispatch.rights import PROGRAM, Caller
from rappd.dispatch.turns import Turn
from rappd.features.programs.program_record import STRANGER
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import body_of, object_in, whole_body
from rappd.listeners.federation.callers import FEDERATION
from rappd.listeners.programs import Program, program_of, refused
from rappd.listeners.request_end import end, until_stopped, was_ended

MOST_AT_ONCE = 5 << 20
"""Bytes of a request from elsewhere."""
_LARGE = 1 << 18
_LOOK_SECONDS = 0.5


def cancel_when_gone(request: web.Request, turn: Turn) -> None:
    """Cancels a turn once its client has hung up, or may not ask any more. Not for turns that outlive a connection."""
    connection = request.transport

    def look() -> bool:
        is_wanted = not (connection is None or connection.is_closing() or was_ended(request))
        if not is_wanted:
            turn.cancel()
        return is_wanted

    turn.when_over(_Looks(look).end)


@contextmanager
def while_trusted(request: web.Request, protocol: str) -> Iterator[None]:
    """For a block that follows a turn: raises why in it once the sender's token or machine was revoked."""
    task = asyncio.current_task()
    assert task is not None
    if FEDERATION not in request.app and "Authorization" not in request.headers:
        yield
        return

    def look() -> bool:
        try:
            program_of(request, protocol)
        except ReportableError as found:
            end(request, task, found)
            return False
        return True

    looks = _Looks(look)
    try:
        yield
    finally:
        looks.end()


class _Looks:
    """Calls ``look`` now and then, while that returns True."""

    def __init__(self, look: Callable[[], bool]) -> None:
        self._look = look
        self._next = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._again)

    def _again(self) -> None:
        if self._look():
            self._next = asyncio.get_running_loop().call_later(_LOOK_SECONDS, self._again)

    def end(self) -> None:
        """Looks no more, and keeps nothing alive: a turn in memory until the next look would be one of hundreds."""
        self._next.cancel()


async def raw_body(request: web.Request) -> bytes:
    """The body, read after its sender is known; from elsewhere JSON alone. Raises ``ReportableError``."""
    return await (body_of(request, MOST_AT_ONCE) if FEDERATION in request.app else whole_body(request))


async def json_body(request: web.Request) -> dict[str, Any]:
    """The body as a JSON object. Raises ``ReportableError``."""
    raw = await raw_body(request)
    read = partial(object_in, raw, listener="for programs")
    return await asyncio.to_thread(read) if len(raw) > _LARGE else read()


Spoken = Callable[[web.Request, Program], Awaitable[web.StreamResponse]]
Shape = Callable[[ReportableError], web.StreamResponse]


def spoken(
    protocol: str, shape: Shape
) -> Callable[[Spoken], Callable[[web.Request], Awaitable[web.StreamResponse]]]:
    """Wraps a route of a protocol: its program is known and noted, and ``shape`` makes an answer of every error."""

    def wrap(handler: Spoken) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        async def handle(request: web.Request) -> web.StreamResponse:
            program: Program | None = None
            try:
                program = program_of(request, protocol)
                program.daemon.programs.seen(program)
                with until_stopped(request), while_trusted(request, protocol):
                    return await handler(request, program)
            except ReportableError as found:
                if request.writer.output_size:
                    raise
                note_refusal(request, protocol, program, found)
                return shape(found)

        handle.__doc__ = handler.__doc__
        return handle

    return wrap


def note_refusal(
    request: web.Request, protocol: str, program: Program | None, found: ReportableError
) -> None:
    """Notes what a program was last refused; one that did not get in is not told apart from others that did not."""
    daemon = request.app[DAEMON]
    known = program or Program(
        protocol, Caller(PROGRAM, caps=()), "", "", STRANGER, False, False, False, None, daemon
    )
    daemon.programs.seen(known, error=refused(found))
