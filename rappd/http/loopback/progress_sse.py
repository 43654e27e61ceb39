"""Answers that take a while: how far the work is, as server-sent events, and then what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import orjson
from aiohttp import web

from envelopes.errors import ReportableError
from rappd.http.app_keys import DAEMON
from rappd.http.responses import ok
from twins.work_progress import Progress

EVENTS = "text/event-stream"

_PACE_SECONDS = 0.1

log = logging.getLogger(__name__)


async def answering(
    request: web.Request, work: Callable[[Progress | None], Awaitable[dict[str, Any]]]
) -> web.StreamResponse:
    """Runs ``work`` and answers with its result as JSON, or, for callers that accept events, with events.

    ``{"type": "progress", "phase", "done", "whole"}`` as often as it is worth it, each phase up to its end, then
    ``{"type": "done", …}`` with the answer or ``{"type": "error", …}`` with the refusal. The work goes on
    when the caller disconnects.
    """
    if EVENTS not in request.headers.get("Accept", ""):
        return ok(await work(None))
    far = _Far()
    request.app[DAEMON].spawn(far.until_done(work))
    response = web.StreamResponse(
        headers={"Content-Type": f"{EVENTS}; charset=utf-8", "Cache-Control": "no-store"}
    )
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):
        while True:
            await far.changed.wait()
            far.changed.clear()
            for phase, (done, whole) in far.taken().items():
                await _tell(response, {"type": "progress", "phase": phase, "done": done, "whole": whole})
            if far.ended is not None:
                await _tell(response, far.ended)
                await response.write_eof()
                return response
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(far.over.wait(), _PACE_SECONDS)
    return response


class _Far:
    """The progress of a work for one caller. ``changed`` is set whenever there is something to send."""

    def __init__(self) -> None:
        self._amounts: dict[str, tuple[int, int]] = {}
        self.ended: dict[str, Any] | None = None
        self.changed = asyncio.Event()
        self.over = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def taken(self) -> dict[str, tuple[int, int]]:
        """Returns the progress of each phase since the last look, in their order."""
        found, self._amounts = self._amounts, {}
        return found

    async def until_done(self, work: Callable[[Progress | None], Awaitable[dict[str, Any]]]) -> None:
        try:
            self.ended = {"type": "done", **await work(self._moved)}
        except ReportableError as found:
            self.ended = {"type": "error", **found.as_json(), "status": found.status}
        except Exception:
            log.exception("what was asked for failed")
            told = {"error": "Something went wrong inside; the log has it.", "do": "rappd logs"}
            self.ended = {"type": "error", **told, "code": "failed", "status": 500}
        finally:
            self.over.set()
            self.changed.set()

    def _moved(self, phase: str, done: int, whole: int) -> None:
        """Called from the thread that works."""
        with contextlib.suppress(RuntimeError):  # the daemon stops, and nobody listens any more
            self._loop.call_soon_threadsafe(self._move, phase, done, whole)

    def _move(self, phase: str, done: int, whole: int) -> None:
        self._amounts[phase] = done, whole
        self.changed.set()


async def _tell(response: web.StreamResponse, event: dict[str, Any]) -> None:
    await response.write(b"data: %s\n\n" % orjson.dumps(event, default=str))
