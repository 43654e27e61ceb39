"""A provider with its circuit breaker: its name on screens, its last result, and when it may be closed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from agents.errors import ModelUnavailableError
from agents.providers.provider import Provider

_OWN_FAULT = (400, 404, 413, 422)  # the request's or the model's name: another request may well be answered
_LISTING_SECONDS = 5.0


class ManagedProvider(msgspec.Struct, eq=False):
    """``models`` lists what the provider offers; ``known`` are the ids seen so far.

    ``takes_pictures`` tells it of a model, None where that shows only by trying.
    ``configured``: the operator named this server, or signed in to it. A provider that is left closes its connection
    once the last answer under way has ended.
    """

    provider: Provider
    where: str
    models: Callable[[], Awaitable[list[dict[str, Any]]]]
    breaker: CircuitBreaker
    takes_pictures: Callable[[str], Awaitable[bool | None]]
    configured: bool = True
    known: tuple[str, ...] = ()
    problem: ModelUnavailableError | None = None
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
            self.problem = problem
            if problem.upstream_status in _OWN_FAULT:
                self.breaker.dropped()
            else:
                self.breaker.failed()
            raise
        except BaseException:
            self.breaker.dropped()
            raise
        else:
            self.problem = None
            self.breaker.answered()
        finally:
            self._busy -= 1
            self._close_if_idle()

    async def listing(self) -> list[dict[str, Any]]:
        """The server's list of models, or the ids known when it has none."""
        self._listed = True
        try:
            async with asyncio.timeout(_LISTING_SECONDS):
                entries = await self.models()
        except (ModelUnavailableError, TimeoutError):
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
        """Waits until a managed that was left has closed its provider, without waiting for answers."""
        await asyncio.gather(*self._closing)

    def _close_if_idle(self) -> None:
        if self._left and not self._busy and not self._closing:
            self._closing.add(asyncio.create_task(self.provider.close()))


class CircuitBreaker:
    """Closed at first. A failure opens it for ``pause`` seconds; then one call at a time may try.

    Who was let in says how it went: ``answered``, ``failed``, or ``dropped`` when nothing can be
    said (cancelled, or the fault was the request's own).
    """

    def __init__(self, pause: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._pause = pause
        self._clock = clock
        self._opens_at: float | None = None
        self._trying = False

    @property
    def closed(self) -> bool:
        return self._opens_at is None

    def lets(self) -> bool:
        """True when a call may go to the model now; counts as the trial when one is due."""
        if self._opens_at is None:
            return True
        if self._trying or self._clock() < self._opens_at:
            return False
        self._trying = True
        return True

    def answered(self) -> None:
        self._opens_at = None
        self._trying = False

    def failed(self) -> None:
        self._opens_at = self._clock() + self._pause
        self._trying = False

    def dropped(self) -> None:
        self._trying = False
