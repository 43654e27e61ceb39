"""Refuses connections to a model server that is really an agent's process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from agents.providers.urls import on_this_machine

Address = tuple[str, int]
WorkerServes = Callable[[Address, Address | None], bool]
"""(server, this side of the open connection) -> True when a worker process serves it. Blocks on ``/proc``."""

_CONNECTED = "connection.connect_tcp.complete"  # an event of the HTTP library's ``trace`` extension


class WorkerServesError(ConnectionError):
    """A worker, or a program that it started, listens where a model server is expected."""


def request_hook(worker_serves: WorkerServes) -> Callable[[Any], Awaitable[None]]:
    """A request hook for the HTTP client: each new connection is checked before anything is sent on it."""

    async def check(event: str, info: dict[str, Any]) -> None:
        if event != _CONNECTED:
            return
        stream = info["return_value"]
        server, client = stream.get_extra_info("server_addr"), stream.get_extra_info("client_addr")
        if not _is_local(server, client):
            return
        if await asyncio.to_thread(worker_serves, server[:2], client[:2]):
            await stream.aclose()
            raise WorkerServesError(f"An agent listens at {server[0]}:{server[1]}.")

    async def hook(request: Any) -> None:
        request.extensions = {**request.extensions, "trace": check}

    return hook


async def is_served_by_worker(url: str, worker_serves: WorkerServes | None) -> bool:
    """The same check for the address of a server on this machine; False for every other address."""
    if worker_serves is None or not on_this_machine(url):
        return False
    parts = urlsplit(url)
    server = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    return await asyncio.to_thread(worker_serves, server, None)


def _is_local(server: Any, client: Any) -> bool:
    """True for a TCP connection that stays on this machine."""
    if not (isinstance(server, tuple) and isinstance(client, tuple)):
        return False
    host: str = server[0]
    return host == client[0] or host.startswith("127.") or host == "::1"
