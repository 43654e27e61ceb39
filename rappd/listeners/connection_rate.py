"""The rate of new connections: of each address, and of each IPv6 network. No I/O."""

from __future__ import annotations

import time
from collections.abc import Callable

from neighborhoods.discovery.addresses import network_of

BURST = 200
A_SECOND = 50.0
"""New connections of one address: so many at once, and then in a second."""
NETWORK_SHARE = 4
"""So many times as many of one IPv6 network: a machine gives itself as many addresses there as it likes."""
MOST_PROVEN = 256
_MOST_KEPT = 1024


class ConnectionRate:
    """Token buckets. An address that proved itself keeps its own, whatever others of its network use up.

    Otherwise a stranger in the network of a paired machine, which is known only after TLS, could keep that out.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: dict[str, tuple[float, float]] = {}
        self._proven: dict[str, None] = {}

    def take(self, address: str) -> bool:
        """Counts one connection; False when the address, or its network, has used its share."""
        network = network_of(address)
        # The network first: an address that it refuses is not even remembered.
        if network != address and address not in self._proven and not self._take(network, NETWORK_SHARE):
            return False
        return self._take(address, 1)

    def prove(self, address: str) -> None:
        """Notes that somebody at the address proved to be known here."""
        self._proven.pop(address, None)
        self._proven[address] = None
        if len(self._proven) > MOST_PROVEN:
            del self._proven[next(iter(self._proven))]

    def forget_full(self) -> None:
        """Forgets who has a full share again, where many are remembered."""
        if len(self._left) > _MOST_KEPT:
            now = self._clock()
            # A network's share is larger and grows as much faster: it is full after the same time at most.
            self._left = {
                key: (left, at) for key, (left, at) in self._left.items() if (now - at) * A_SECOND < BURST
            }

    def _take(self, key: str, share: int) -> bool:
        now, most = self._clock(), float(share * BURST)
        left, at = self._left.get(key, (most, now))
        left = min(most, left + (now - at) * share * A_SECOND)
        self._left[key] = (left - 1.0 if left >= 1.0 else left, now)
        return left >= 1.0
