"""Operations that take a while: how far they are, as server-sent events, and then what came of them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from envelopes.errors import ReportableError
from envelopes.events import Emit, Progress
from rappd.dispatch.turns import Turn
from rappd.errors import NotFoundError, RappdError, disk_problem
from rappd.http.app_keys import DAEMON
from rappd.http.event_stream import is_wanted, opened
from rappd.http.loopback.security import caller
from rappd.http.responses import ok
from twins import work_progress

_PACE_SECONDS = 0.1

log = logging.getLogger(__name__)


async def answering(
    request: web.Request,
    work: Callable[[Emit], Awaitable[dict[str, Any]]],
    *,
    id: str = "",
    stop: Callable[[], object] | None = None,
) -> web.StreamResponse:
    """Runs ``work`` as a turn and answers with its result: see ``following``. ``id``, ``stop``: see ``Dispatcher.operate``."""
    turn = request.app[DAEMON].dispatcher.operate(work, caller(request), id=id, stop=stop)
    return await following(request, turn)


async def following(
    request: web.Request, turn: Turn, *, shown: Callable[[bytes], bytes | dict[str, Any]] = bytes
) -> web.StreamResponse:
    """Answers with what a turn comes to as JSON, or, for callers that accept events, with its events, as ``shown``.

    The last is ``{"type": "done", …}`` with the answer or ``{"type": "error", …}`` with the refusal. The turn goes on
    when the caller disconnects.
    """
    if not is_wanted(request):
        return ok((await turn.reply()).data)
    async with opened(request) as told:
        async for _, event in turn.events():
            await told.send(shown(event))
        await told.send(await _last_event(turn))
    return told.response


async def cancel(request: web.Request, id: str) -> web.Response:
    """Cancels the operation of that id, and answers once it has ended.

    Raises ``NotFoundError``, and what refuses where it is too late.
    """
    if (turn := request.app[DAEMON].dispatcher.operation(id)) is None:
        raise NotFoundError("Nothing of that id is under way.", do="It may be done: rappd egg hatchings")
    turn.cancel()
    await turn.over_within(None)
    return ok({"cancelled": True})


def progress_to(emit: Emit) -> work_progress.Progress:
    """Tells of work on any thread, each phase as often as it is worth it and up to its end. Made on the event loop."""
    loop = asyncio.get_running_loop()
    told: dict[str, float] = {}

    def moved(phase: str, done: int, whole: int) -> None:
        now = time.monotonic()
        if done >= whole or now - told.get(phase, -_PACE_SECONDS) >= _PACE_SECONDS:
            told[phase] = now
            with contextlib.suppress(RuntimeError):  # the daemon stops, and nobody listens any more
                loop.call_soon_threadsafe(emit, Progress(phase, done, whole))

    return moved


async def _last_event(turn: Turn) -> dict[str, Any]:
    try:
        return {"type": "done", **(await turn.reply()).data}
    except ReportableError as found:
        told: ReportableError = found
    except Exception as error:
        log.exception("what was asked for failed")
        told = disk_problem(error) or RappdError(
            "Something went wrong inside; the log has it.", do="rappd logs"
        )
    return {"type": "error", **told.as_json(), "status": told.status}
