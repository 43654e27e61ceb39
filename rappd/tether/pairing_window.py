"""The pairing window: a one-time token and a typed code, good for minutes and for one device."""

from __future__ import annotations

import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from rappd.tether import proofs
from rappd.tether.devices import Kind

LONGEST_SECONDS = 600
BAD_OF_ONE_SOURCE = 5
BAD_IN_ALL = 64
"""Bad proofs that a code survives: of its 60 bits, all of them together guess one in 2^54. Fewer would let any stranger
in the network void it."""


@dataclass(slots=True)
class PairingWindow:
    """One QR code. Times are seconds of ``clock``; ``scope``, ``user``, ``invited`` and ``kind`` go to the device that pairs.

    ``kind`` is said by the owner with the verdict on the digits.
    """

    seconds: float
    scope: str
    user: str
    name: str = ""
    invited: bool = False
    kind: Kind = "guest"
    clock: Callable[[], float] = time.monotonic
    id: str = field(default_factory=lambda: proofs.b64(secrets.token_bytes(8)))
    token: bytes = field(default_factory=lambda: secrets.token_bytes(16), repr=False)
    code: str = field(default_factory=proofs.new_code, repr=False)
    visited: bool = False
    bad_proofs: Counter[str] = field(default_factory=Counter)
    """By the network that they came from."""
    used: bool = False
    until: float = 0.0

    def __post_init__(self) -> None:
        self.until = self.clock() + min(self.seconds, LONGEST_SECONDS)

    @property
    def open(self) -> bool:
        """True while a device can still pair by it."""
        return not self.used and self.bad_proofs.total() < BAD_IN_ALL and self.clock() < self.until

    @property
    def remaining(self) -> float:
        """Seconds until it closes; 0 when it has."""
        return max(0.0, self.until - self.clock()) if self.open else 0.0

    def close(self) -> None:
        """Ends it now."""
        self.until = self.clock()

    def keys(self) -> tuple[bytes, bytes]:
        """The proof keys: of the QR code's token and of the typed code."""
        return self.token, proofs.code_key(self.code)

    def fits(self, id: str, source: str) -> bool:
        """True when ``id`` names it; the page of somebody who types the code sends none.

        Never for a network from which too many bad proofs came.
        """
        return self.open and id in ("", self.id) and self.bad_proofs[source] < BAD_OF_ONE_SOURCE
