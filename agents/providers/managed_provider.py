"""A provider in use: its name on screens, the last refusal of its server, and when it may be closed.

There is no circuit breaker. A server that is gone costs a turn the time to connect, and a person who asks again
always reaches the server; a pause that silenced a model after one error cost everybody's turns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from agents.errors import ModelUnavailableError
from agents.providers.provider import Provider
from agents.providers.refusals import Meaning

_LISTING_SECONDS = 5.0


class LastRefusal(msgspec.Struct, frozen=True):
    """The last error of a server, until it answers again; ``at`` is epoch time."""

    problem: ModelUnavailableError
    at: float


class ManagedProvider(msgspec.Struct, eq=False):
    """``models`` lists what the provider offers; ``known`` are the ids seen so far.

    ``takes_pictures`` tells it of a model, None where that shows only by trying; ``uses_agents`` is False for a model
    that cannot be offered tools. ``configured``: the operator named this server, or signed in to it. A provider that
    is left closes its connection once the last answer under way has ended.
    """

    provider: Provider
    where: str
    models: Callable[[], Awaitable[list[dict[str, Any]]]]
    takes_pictures: Callable[[str], Awaitable[bool | None]]
    uses_agents: Callable[[str], bool]
    configured: bool = True
    known: tuple[str, ...] = ()
    refused: LastRefusal | None = None
    _busy: int = 0
    _left: bool = False
    _listed: bool = False
    _closing: set[asyncio.Task[None]] = msgspec.field(default_factory=set)

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """One answer under way; keeps account of how it ends."""
        self._busy += 1
        try:
            yield
        except ModelUnavailableError as problem:
            self.refused = LastRefusal(problem, time.time())
            raise
        else:
            self.refused = None
        finally:
            self._busy -= 1
            self._close_if_idle()

    async def listing(self) -> list[dict[str, Any]]:
        """The server's list of models; the ids known when it has none, and none when nobody answers."""
        self._listed = True
        try:
            async with asyncio.timeout(_LISTING_SECONDS):
                entries = await self.models()
        except TimeoutError:
            return []
        except ModelUnavailableError as problem:
            if problem.meaning in (Meaning.SILENT, Meaning.SLOW):
                return []
            return [{"id": model, "name": model} for model in self.known or (self.provider.model,)]
        self.known = tuple(entry["id"] for entry in entries if entry.get("available", True))
        return entries

    async def has(self, model: str) -> bool:
        """True when it offers ``model``, as far as can be told: a server that lists nothing is believed."""
        if not self.known and not self._listed:
            await self.listing()
        return not self.known or model in self.known

    @property
    def closed(self) -> bool:
        return bool(self._closing) and all(task.done() for task in self._closing)

    def release(self) -> None:
        self._left = True
        self._close_if_idle()

    async def wait_closed(self) -> None:
        """Waits until a provider that was left has closed its connection, without waiting for answers."""
        await asyncio.gather(*self._closing)

    def _close_if_idle(self) -> None:
        if self._left and not self._busy and not self._closing:
            self._closing.add(asyncio.create_task(self.provider.close()))
