"""The hash chain that makes a thread's record tamper-evident."""

from __future__ import annotations

from hashlib import sha256
from struct import Struct

GENESIS = bytes(32)
"""The hash that the first event of a thread links to."""

_MOMENT = Struct(">Q").pack


def link(previous: bytes, at: int, body: bytes) -> bytes:
    """SHA-256 over the previous event's hash, the moment and the stored bytes, as they are.

    ``previous`` is 32 bytes (``GENESIS`` for the first event), ``at`` whole microseconds since
    the epoch, written as 8 bytes, big end first. Raises ``ValueError`` for anything else: the
    parts have fixed widths, so no two different events are hashed as the same bytes.
    """
    if len(previous) != 32:
        raise ValueError(f"the previous hash has {len(previous)} bytes, not 32")
    if not 0 <= at < 1 << 64:
        raise ValueError(f"{at} is no moment in microseconds since the epoch")
    return sha256(previous + _MOMENT(at) + body).digest()
