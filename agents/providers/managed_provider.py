"""A provider in use: its name on screens, the last refusal of its server, and when it may be closed.

There is no circuit breaker, for a server or for a model. A server that is gone costs a turn the time to connect, and a person who asks again
always reaches the server; a pause that silenced a model after one error cost everybody's turns.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import msgspec

from agents.errors import ModelUnavailableError
from agents.providers.abilities import Limit
from agents.providers.model_help import ModelTraits
from agents.providers.provider import Provider
from agents.providers.refusals import Meaning

_LISTING_SECONDS = 5.0
_OF_SERVER = (
    *("", Meaning.SILENT, Meaning.KEY, Meaning.QUOTA),
    *(Meaning.NOT_A_MODEL_SERVER, Meaning.ELSEWHERE, Meaning.NO_ANSWER),
)
"""Meanings of errors that every model of the server would have met."""
_EVERY_MODEL = ""
_MOST_REFUSALS = 64
"""Models whose last refusal is kept: a server without a list takes any name."""


class LastRefusal(msgspec.Struct, frozen=True):
    """The last error of a model's server, until that model answers again; ``at`` is epoch time."""

    problem: ModelUnavailableError
    at: float


class ManagedProvider(msgspec.Struct, eq=False):
    """``models`` lists what the provider offers; ``known`` are the ids seen so far.

    ``takes_pictures`` tells it of a model, None where that shows only by trying; ``limits`` are those known of a model,
    ``traits`` what its server published, once ``look`` asked.
    Refusals are kept for each model, those of the whole server for all of them. ``configured``: the operator named
    this server, or signed in to it. A provider that is left closes its connection once the last answer under way has
    ended.
    """

    provider: Provider
    where: str
    models: Callable[[], Awaitable[list[dict[str, Any]]]]
    takes_pictures: Callable[[str], Awaitable[bool | None]]
    limits: Callable[[str], list[Limit]]
    look: Callable[[str], Awaitable[None]]
    traits: Callable[[str], ModelTraits]
    configured: bool = True
    known: tuple[str, ...] = ()
    refusals: dict[str, LastRefusal] = msgspec.field(default_factory=dict)
    _busy: int = 0
    _left: bool = False
    _listed: bool = False
    _closing: set[asyncio.Task[None]] = msgspec.field(default_factory=set)

    @asynccontextmanager
    async def in_use(self) -> AsyncIterator[None]:
        """Keeps the connection open until an answer under way has ended."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._close_if_idle()

    @contextmanager
    def asked(self, model: str) -> Iterator[None]:
        """Keeps account of how a request for ``model`` ends; "" is the usual one."""
        model = model or self.provider.model
        try:
            yield
        except ModelUnavailableError as problem:
            key = _EVERY_MODEL if problem.meaning in _OF_SERVER else model
            if len(self.refusals) >= _MOST_REFUSALS and key not in self.refusals:
                del self.refusals[next(iter(self.refusals))]
            self.refusals[key] = LastRefusal(problem, time.time())
            raise
        self.refusals.pop(_EVERY_MODEL, None)
        self.refusals.pop(model, None)

    def refusal_of(self, model: str) -> LastRefusal | None:
        """The last error that stands in the way of ``model``; None once it answered."""
        return self.refusals.get(_EVERY_MODEL) or self.refusals.get(model)

    @property
    def last_refusal(self) -> LastRefusal | None:
        """The newest error, whichever model was asked."""
        return max(self.refusals.values(), key=lambda one: one.at, default=None)

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
