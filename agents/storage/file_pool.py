"""Threads for reading and writing in workspaces, apart from those that the rest of the daemon waits for."""

from __future__ import annotations

import asyncio
import contextvars
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

THREADS = 8
"""A disk that answers slowly holds up to so many calls, and no others."""

_P = ParamSpec("_P")
_T = TypeVar("_T")
_pool: ThreadPoolExecutor | None = None


async def in_file_pool(function: Callable[_P, _T], /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """The result of ``function``, called in a thread of the pool for workspace files."""
    global _pool
    if _pool is None:
        _pool = ThreadPoolExecutor(THREADS, thread_name_prefix="workspace-files")
    call = functools.partial(contextvars.copy_context().run, function, *args, **kwargs)
    return await asyncio.get_running_loop().run_in_executor(_pool, call)
