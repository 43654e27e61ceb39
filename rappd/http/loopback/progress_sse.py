"""Answers that take a while: how far the work is, as server-sent events, and then what came of it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from envelopes.errors import ReportableError
from rappd.errors import RappdError, disk_problem
from rappd.http.app_keys import DAEMON
from rappd.http.event_stream import is_wanted, opened
from rappd.http.responses import ok
from twins.work_progress import Progress

Tell = Callable[[dict[str, Any]], None]

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
    if not is_wanted(request):
        return ok(await work(None))
    events = _Events()

    def moved(phase: str, done: int, whole: int) -> None:  # from the thread that works
        events.post(phase, {"type": "progress", "phase": phase, "done": done, "whole": whole})

    return await _following(request, events, work(moved))


async def answering_events(
    request: web.Request, work: Callable[[Tell], Awaitable[dict[str, Any]]]
) -> web.StreamResponse:
    """The same with events of the work's own, of which the latest counts; ``type`` is set by the work."""
    if not is_wanted(request):
        return ok(await work(lambda event: None))
    events = _Events()
    return await _following(request, events, work(lambda event: events.post("", event)))


async def _following(
    request: web.Request, events: _Events, work: Awaitable[dict[str, Any]]
) -> web.StreamResponse:
    request.app[DAEMON].spawn(events.until_done(work))
    async with opened(request) as told:
        while True:
            await events.changed.wait()
            events.changed.clear()
            for event in events.taken():
                await told.send(event)
            if events.ended is not None:
                await told.send(events.ended)
                break
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(events.over.wait(), _PACE_SECONDS)
    return told.response


class _Events:
    """The events of a work for one caller, of each key the latest. ``changed``: there is something to send."""

    def __init__(self) -> None:
        self._latest: dict[str, dict[str, Any]] = {}
        self.ended: dict[str, Any] | None = None
        self.changed = asyncio.Event()
        self.over = asyncio.Event()
        self._loop = asyncio.get_running_loop()

    def taken(self) -> list[dict[str, Any]]:
        """Returns the events since the last look, in the order of their keys."""
        found, self._latest = self._latest, {}
        return list(found.values())

    async def until_done(self, work: Awaitable[dict[str, Any]]) -> None:
        try:
            self.ended = {"type": "done", **await work}
        except ReportableError as found:
            self.ended = {"type": "error", **found.as_json(), "status": found.status}
        except Exception as error:
            log.exception("what was asked for failed")
            told = disk_problem(error) or RappdError(
                "Something went wrong inside; the log has it.", do="rappd logs"
            )
            self.ended = {"type": "error", **told.as_json(), "status": told.status}
        finally:
            self.over.set()
            self.changed.set()

    def post(self, key: str, event: dict[str, Any]) -> None:
        """Called from any thread."""
        with contextlib.suppress(RuntimeError):  # the daemon stops, and nobody listens any more
            self._loop.call_soon_threadsafe(self._take, key, event)

    def _take(self, key: str, event: dict[str, Any]) -> None:
        self._latest[key] = event
        self.changed.set()
