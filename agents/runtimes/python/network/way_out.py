"""The daemon's side of a worker's own network: the socket that is handed over, and the proxy that accepts at it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Iterator, Sequence

from agents.runtimes.python.network.host_proxy import HostProxy, OnHost, Upstream
from agents.runtimes.python.network.own_network import taken_over

_log = logging.getLogger(__name__)


class WayOut:
    """The way out of one worker, from its order to its end. The arguments are those of ``HostProxy``."""

    def __init__(
        self,
        servers: Sequence[str],
        on_host: OnHost,
        is_own: Callable[[int], bool],
        upstream: Upstream | None = None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._ours, self._theirs = socket.socketpair()
        self._ours.setblocking(False)
        self._proxy = HostProxy(servers, on_host, is_own, upstream)
        self._serving: asyncio.Task[None] | None = None
        self._loop.add_reader(self._ours.fileno(), self._on_readable)

    @contextlib.contextmanager
    def worker_end(self) -> Iterator[int]:
        """The descriptor that goes to the worker, closed here afterwards."""
        with self._theirs:
            yield self._theirs.fileno()

    def close(self) -> None:
        """End every connection. Idempotent."""
        self._proxy.close()
        self._forget_channel()
        if self._serving is not None:
            self._serving.cancel()

    def _on_readable(self) -> None:
        try:
            listening = taken_over(self._ours)
        except BlockingIOError:
            return
        except OSError:
            listening = None
        self._forget_channel()
        if listening is not None:
            self._serving = self._loop.create_task(self._serve(listening))

    async def _serve(self, listening: socket.socket) -> None:
        try:
            await self._proxy.serve(listening)
        except (OSError, ValueError) as problem:  # no stream socket that listens
            _log.warning("a worker handed over a socket that cannot be used: %s", problem)
            listening.close()

    def _forget_channel(self) -> None:
        if self._ours.fileno() >= 0:
            self._loop.remove_reader(self._ours.fileno())
            self._ours.close()
