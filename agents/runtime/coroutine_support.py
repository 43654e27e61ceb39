"""Running what an ``async def perform`` returns, from code that does not wait."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import copy_context
from typing import Any


def settled(value: Any) -> Any:
    """``value``, or what it comes to when it is awaitable. Its exceptions are raised here.

    Each awaitable gets an event loop of its own; where one is running in this thread already, in
    another thread, for which this one stands still.
    """
    if type(value) is str or not hasattr(type(value), "__await__"):
        return value
    import asyncio

    async def finish() -> Any:
        return await value

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(finish())
    return _elsewhere(lambda: asyncio.run(finish()))


def _elsewhere(run: Callable[[], Any]) -> Any:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1, thread_name_prefix="async-perform") as pool:
        return pool.submit(copy_context().run, run).result()
