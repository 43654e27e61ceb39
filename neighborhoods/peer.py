"""A peer: another machine that this one's owner trusts, and by which key, pins and scopes."""

from __future__ import annotations

from hashlib import sha256
from typing import Literal

import msgspec

Whose = Literal["mine", "friend"]

MINE: tuple[str, ...] = ("*",)
"""The scopes of a machine of the same owner."""
FRIEND: tuple[str, ...] = ("EGG",)
"""The scopes of a friend's machine at first: sending eggs, which are staged."""


class Peer(msgspec.Struct, frozen=True):
    """One paired machine. Its identity is ``fingerprint``; ``name`` is only what this owner calls it.

    ``certificate`` is the pinned TLS leaf (DER), ``sealing_key`` its recipient for sealed eggs, ``scopes``
    the capabilities it has here, ``offered`` whether its agents are tools of the brainstem here,
    ``note`` a line of the owner's about it, ``address`` the ``host:port`` that last led to it. Moments are microseconds since 1970, 0 for never.
    """

    fingerprint: str
    name: str
    whose: Whose
    public_key: bytes
    certificate: bytes
    sealing_key: str
    scopes: tuple[str, ...]
    paired_at: int
    called: str = ""
    address: str = ""
    seen_at: int = 0
    offered: bool = False
    note: str = ""

    @property
    def short(self) -> str:
        """The four characters that screens show."""
        return self.fingerprint[:4]

    @property
    def prefix(self) -> str:
        """The sixteen that end its agent ids on the wire."""
        return self.fingerprint[:16]

    @property
    def pin(self) -> bytes:
        """SHA-256 of the pinned certificate: what a connection is compared with."""
        return sha256(self.certificate).digest()
