"""Changes that eggs make to twins: one after the other, each to its end, and a twin rests while it is changed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeVar

from envelopes.errors import ReportableError
from rappd.tenants.tenants import Tenants
from twins.background_tasks import BackgroundTasks
from twins.eggs.parsed_egg import Destination

log = logging.getLogger(__name__)

_T = TypeVar("_T")
_M = TypeVar("_M", bound=Mapping[str, Any])
Tell = Callable[[], Awaitable[None]]
"""Reads the host's agent files again and notifies watchers."""


class RestingTwins:
    """A change goes on when its caller disconnects: it may be an agent of the very twin that has to stop for it."""

    def __init__(self, tenants: Tenants, refresh_host: Tell) -> None:
        self._tenants = tenants
        self._refresh_host = refresh_host
        self._hatching = asyncio.Lock()
        # An error is its caller's, who may have disconnected.
        self._under_way = BackgroundTasks(lambda error: log.info("an egg: %s", error))

    async def close(self) -> None:
        """Returns when what is under way has come to its end."""
        await self._under_way.settle()

    async def to_the_end(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Awaits ``work``, which goes on to its end when the caller disconnects."""
        return await asyncio.shield(self._under_way.spawn(work))

    async def alone(self, work: Coroutine[Any, Any, _M]) -> _M:
        """Runs ``work`` with no other hatching under way.

        The host's agent files are read again after it, unless it was one twin that hatched: the host's stayed.
        """
        async with self._hatching:
            done = await work
        if done.get("hatched", {}).get("destination") != Destination.TWIN:
            await self._refresh_host()
        return done

    @asynccontextmanager
    async def resting(self, key: str) -> AsyncIterator[None]:
        """Nothing of a twin runs meanwhile. ``key`` "" is nobody."""
        if not key:
            yield
            return
        was_running = self._tenants.presence(key).running
        try:
            async with self._tenants.apart(key):
                await self._tenants.stop(key, hold_port=was_running)
                yield
        finally:
            if was_running:
                await self._wake_again(key)

    @asynccontextmanager
    async def _all_resting(self, keys: Iterable[str]) -> AsyncIterator[None]:
        """The same for several twins, one after the other."""
        async with AsyncExitStack() as stack:
            for key in sorted(keys):
                await stack.enter_async_context(self.resting(key))
            yield

    async def _wake_again(self, key: str) -> None:
        """Wakes a twin on the port that was held for it, if it still lives here."""
        try:
            if (self._tenants.layout.active(key) / "rappid.json").exists():
                await self._tenants.boot(key)
        except ReportableError as problem:  # hatched is hatched; that it sleeps is seen in the list
            log.warning("%s stays stopped: %s", key, problem)
        finally:
            self._tenants.let_go_port(key)
