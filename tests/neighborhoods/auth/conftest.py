from __future__ import annotations

import asyncio
from collections.abc import Callable

import uvloop


def pytest_asyncio_loop_factories() -> dict[str, Callable[[], asyncio.AbstractEventLoop]]:
    """Every test here runs on both event loops."""
    return {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}
