"""Transfers of eggs from and to phones that are under way: few of one phone, and none that stands still."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from rappd.daemon.rate_limit import RateLimitedError
from rappd.tether.devices import Device
from rappd.tether.errors import BadEggTokenError

T = TypeVar("T")

MOST_AT_ONCE = 4
"""Of one phone, which sends and fetches one after the other."""
STILL_SECONDS = 60.0


class EggTransfer:
    """A phone's request that sends or fetches an egg; each read from the phone and each write to it is a step."""

    def __init__(self, device: Device, may_carry: Callable[[Device], bool]) -> None:
        self._device, self._may_carry = device, may_carry
        self._limit: asyncio.Timeout | None = None

    async def sent(self, writing: Awaitable[None]) -> None:
        """As ``received``."""
        await self.received(writing)

    async def received(self, waits: Awaitable[T]) -> T:
        """The result of ``waits``.

        Raises ``BadEggTokenError`` as soon as the phone may carry eggs no more, ``TimeoutError`` when nothing moves
        for ``STILL_SECONDS``.
        """
        try:
            async with asyncio.timeout(STILL_SECONDS) as self._limit:
                result = await waits
        except TimeoutError:
            self._check()
            raise
        finally:
            self._limit = None
        self._check()
        return result

    def end_unless_allowed(self) -> None:
        """Wakes a step that waits for a phone which may carry eggs no more."""
        if self._limit is not None and not self._may_carry(self._device):
            self._limit.reschedule(asyncio.get_running_loop().time())

    def _check(self) -> None:
        if not self._may_carry(self._device):
            raise BadEggTokenError


class EggTransfers:
    """The transfers of all phones. All calls come from the event loop."""

    def __init__(self) -> None:
        self._running: dict[str, set[EggTransfer]] = {}

    @contextmanager
    def begun(self, device: Device, may_carry: Callable[[Device], bool]) -> Iterator[EggTransfer]:
        """A transfer, which counts until the block ends. Raises ``RateLimitedError`` for one too many."""
        running = self._running.setdefault(device.id, set())
        if len(running) >= MOST_AT_ONCE:
            raise RateLimitedError(
                f"This phone sends and fetches {MOST_AT_ONCE} eggs already.", do="Wait for one of them."
            )
        transfer = EggTransfer(device, may_carry)
        running.add(transfer)
        try:
            yield transfer
        finally:
            running.discard(transfer)
            if not running:
                self._running.pop(device.id, None)

    def end_unless_allowed(self, device: Device) -> None:
        """Ends a phone's transfers at once when it was removed or lost the right."""
        for transfer in self._running.get(device.id, ()):
            transfer.end_unless_allowed()
