"""The stop of a listener, for requests that follow a turn: they say so to their clients while they still can."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from rappd.federation.errors import ShuttingDownError

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
