"""The end of requests that follow a turn, by the stop of their listener or of their trust: they say so while they still can."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from envelopes.errors import ReportableError
from rappd.federation.errors import ShuttingDownError

FOLLOWING = web.AppKey("following", set[asyncio.Task[Any]])
"""Requests that wait for a turn, or stream one."""
_ENDED = web.RequestKey("ended", ReportableError)


def end_at_stop(app: web.Application) -> None:
    """Lets requests of ``app`` that follow a turn say so when its listener closes, while they still can."""
    following: set[asyncio.Task[Any]] = set()
    app[FOLLOWING] = following
    app.on_shutdown.append(_end_following)


@contextmanager
def until_stopped(request: web.Request) -> Iterator[None]:
    """For a block that follows a turn: raises ``ShuttingDownError`` in it when the listener closes.

    Where ``end`` was called, raises what that gave.
    """
    following, task = request.app[FOLLOWING], asyncio.current_task()
    assert task is not None
    following.add(task)
    try:
        yield
    except asyncio.CancelledError as stopped:
        if task in following:
            raise
        task.uncancel()
        raise was_ended(request) or ShuttingDownError(
            "This machine is stopping.", do="Ask again soon."
        ) from stopped
    finally:
        following.discard(task)


def end(request: web.Request, task: asyncio.Task[Any], why: ReportableError) -> None:
    """Raises ``why`` in the innermost block of ``task`` that follows a turn for ``request``."""
    request[_ENDED] = why
    if task in request.app[FOLLOWING]:
        request.app[FOLLOWING].discard(task)
        task.cancel()


def was_ended(request: web.Request) -> ReportableError | None:
    """The error with which ``end`` ended a request."""
    return request.get(_ENDED)


async def _end_following(app: web.Application) -> None:
    following = app[FOLLOWING]
    for task in list(following):
        following.discard(task)
        task.cancel()
