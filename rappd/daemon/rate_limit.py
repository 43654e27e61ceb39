"""Rate limits for sign-in, import and failed authentication."""

from __future__ import annotations

import time
from collections.abc import Callable

from envelopes.errors import ReportableError
from envelopes.ip_addresses import source_text
from neighborhoods.discovery.address_text import network_of


class RateLimitedError(ReportableError):
    """Asked too often."""

    code = "too_many"
    status = 429


_MOST_KEPT = 1000
_NETWORK_SHARE = 4


class RateLimit:
    """``count`` tries per ``seconds``, for each key apart; ``/chat`` on loopback never has one."""

    def __init__(self, count: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._count = count
        self._seconds = seconds
        self._clock = clock
        self._tries: dict[str, list[float]] = {}
        self._room = _MOST_KEPT

    def take(self, key: str = "") -> None:
        """Counts one try. Raises ``RateLimitedError`` when the key has used its share."""
        now = self._clock()
        tries = [at for at in self._tries.get(key, ()) if now - at < self._seconds]
        if len(tries) >= self._count:
            wait = int(self._seconds - (now - tries[0])) + 1
            self._tries[key] = tries
            raise RateLimitedError("That was tried too often.", do=f"Wait {wait} s.")
        tries.append(now)
        self._tries[key] = tries
        if len(self._tries) > self._room:
            self._tries = {
                known: times
                for known, times in self._tries.items()
                if times and now - times[-1] < self._seconds
            }
            # Twice as many before the next look: one at each try would cost a flood of addresses its square.
            self._room = max(_MOST_KEPT, 2 * len(self._tries))

    def give_back(self, key: str = "") -> None:
        """Counts the latest try no more: it was no failure."""
        if tries := self._tries.get(key):
            tries.pop()


class AddressLimit:
    """``count`` tries per ``seconds`` for each address, and four times as many for each IPv6 network of 64 bits.

    A machine gives itself as many addresses of its network as it likes; the other machines there share it.
    """

    def __init__(self, count: int, seconds: float) -> None:
        self._by_address = RateLimit(count, seconds)
        self._by_network = RateLimit(count * _NETWORK_SHARE, seconds)

    def take(self, address: str) -> None:
        """Counts one try. Raises ``RateLimitedError`` when the address, or its network, has used its share."""
        address = source_text(address)
        network = network_of(address)
        if network != address:
            self._by_network.take(network)
        self._by_address.take(address)
