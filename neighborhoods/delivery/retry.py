"""Another try, and only where it may help: when, and how long after the one before.

A caller that waits: 0.5, 1 and 2 seconds later (Rulebook v0.1, Retries). The outbox: ``RetryPolicy``.
"""

from __future__ import annotations

import asyncio
import random as randomness
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from neighborhoods.delivery.delivery_route import RETRIABLE
from neighborhoods.errors import PeerOfflineError, RetriableError

PAUSES = (0.5, 1.0, 2.0)
SPREAD = 0.2
_NOT_BEGUN = (425, 429)  # statuses that say nothing was done

Random = Callable[[], float]
"""Gives numbers from 0 up to, not including, 1."""

_T = TypeVar("_T")


def jittered(seconds: float, random: Random) -> float:
    """Up to a fifth shorter or longer, so that those who wait together do not come back together."""
    return seconds * (1 - SPREAD + 2 * SPREAD * random())


class RetryPolicy(msgspec.Struct, frozen=True):
    """Seconds and sizes of delivery."""

    first_pause: float = 1.0
    longest_pause: float = 300.0
    ask_every: float = 60.0
    """Seconds between two requests for the replies of accepted envelopes."""
    ask_gap: float = 10.0
    """Signs of life make this machine ask earlier, but not more often than this."""
    try_gap: float = 0.5
    """So long after a try that failed, signs of life do not start another."""
    sweep_every: float = 30.0
    batch: int = 100
    batch_octets: int = 512 * 1024
    asked_at_once: int = 50

    def pause(self, tries: int, random: Random) -> float:
        """After so many tries in vain: doubling, up to the longest, a fifth shorter or longer."""
        return jittered(min(self.longest_pause, self.first_pause * 2.0 ** min(tries - 1, 30)), random)


def may_be_retried(error: Exception, *, repeatable: bool = True) -> bool:
    """True when the same envelope, with the same id, may be sent again after this error.

    ``repeatable``: the peer answers a repeated id from its record. Where it does not, only what surely
    never arrived may be sent again.
    """
    if isinstance(error, PeerOfflineError):
        return repeatable or not error.maybe_sent
    if not isinstance(error, RetriableError):
        return False
    return error.answered in (RETRIABLE if repeatable else _NOT_BEGUN)


async def retried(
    attempt: Callable[[float], Awaitable[_T]],
    *,
    within: float,
    repeatable: bool = True,
    random: Random = randomness.random,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> _T:
    """Returns the result of ``attempt``, after up to three more tries, all ``within`` so many seconds.

    ``attempt`` is given the seconds that are left and has to send the very same bytes each time. A peer's
    own ``Retry-After`` makes a pause longer, never shorter. When nothing is left to try, or the next pause
    would pass the deadline, the last error is raised.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within
    for planned in PAUSES:
        try:
            return await attempt(deadline - loop.time())
        except (PeerOfflineError, RetriableError) as error:
            seconds = max(jittered(planned, random), getattr(error, "retry_after", None) or 0.0)
            if not may_be_retried(error, repeatable=repeatable) or loop.time() + seconds >= deadline:
                raise
        await pause(seconds)
    return await attempt(deadline - loop.time())
