"""Requests of foreign programs over HTTP, whatever their protocol: the body, errors in the client's shape, following a turn."""

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
from rappd.features.programs.record import STRANGER
from rappd.federation.errors import ShuttingDownError
from rappd.listeners.app_keys import DAEMON
from rappd.listeners.bodies import BodyTooLargeError, body_of, object_in
from rappd.listeners.federation.callers import FEDERATION
from rappd.listeners.programs import Program, program_of, refused

MOST_AT_ONCE = 5 << 20
"""Bytes of a request from elsewhere."""
_LARGE = 1 << 18
_LOOK_SECONDS = 0.5


def cancel_when_gone(request: web.Request, turn: Turn) -> None:
    """Cancels a turn once its client has hung up. Not for turns that outlive a connection."""
    loop = asyncio.get_running_loop()

    def look() -> None:
        if turn.is_over:
            return
        if request.transport is None or request.transport.is_closing():
            turn.cancel()
        else:
            loop.call_later(_LOOK_SECONDS, look)

    loop.call_later(_LOOK_SECONDS, look)


FOLLOWING = web.AppKey("following", set[asyncio.Task[Any]])
"""Requests that wait for a turn, or stream one."""


def end_at_stop(app: web.Application) -> None:
    """Lets requests of ``app`` that follow a turn say so when its listener closes, while they still can."""
    following: set[asyncio.Task[Any]] = set()
    app[FOLLOWING] = following
    app.on_shutdown.append(_end_following)


@contextmanager
def until_stopped(request: web.Request) -> Iterator[None]:
    """For a block that follows a turn: raises ``ShuttingDownError`` in it when the listener closes."""
    following, task = request.app[FOLLOWING], asyncio.current_task()
    assert task is not None
    following.add(task)
    try:
        yield
    except asyncio.CancelledError as stopped:
        if task in following:
            raise
        task.uncancel()
        raise ShuttingDownError("This machine is stopping.", do="Ask again soon.") from stopped
    finally:
        following.discard(task)


async def _end_following(app: web.Application) -> None:
    following = app[FOLLOWING]
    for task in list(following):
        following.discard(task)
        task.cancel()


async def raw_body(request: web.Request) -> bytes:
    """The body, read after its sender is known; from elsewhere JSON alone. Raises ``ReportableError``."""
    try:
        return await (body_of(request, MOST_AT_ONCE) if FEDERATION in request.app else request.read())
    except web.HTTPRequestEntityTooLarge as error:
        raise BodyTooLargeError(
            "The request is too large.", do="Send less, or raise http.body_mb."
        ) from error


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
                with until_stopped(request):
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
