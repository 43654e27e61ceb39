"""The UUID of a thread: the same caller with the same session comes back to the same conversation."""

from __future__ import annotations

import hashlib
import re

from envelopes.envelope import as_uuid

_MOMENT = re.compile(
    r"""([0-9a-f]{8})-([0-9a-f]{4})-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"\Z
    |[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-([0-9a-f]{12})"\Z""",
    re.VERBOSE,
)
_TIMED = ("7", "8")
_THREAD_SPACE = bytes.fromhex("6ba4e3a82f0d5c1e9b7a1d3c5f7e9a0b")


def thread_id(workspace: str, caller: str, session: str) -> str:
    """The thread that a caller's session in a workspace always has; ``session`` is its JSON text.

    A UUIDv5 as RFC 9562 has it. Sessions that earlier versions minted are UUIDv7: for text that ends in one, or in
    the UUIDv8 of another thread, it is a UUIDv8 whose last 48 bits are that one's time.
    """
    name = f"{workspace}\n{caller}\n{session}".encode()
    digits = hashlib.sha1(_THREAD_SPACE + name, usedforsecurity=False).hexdigest()
    moment = _MOMENT.match(session, len(session) - 37) if session[-23:-22] in _TIMED else None
    if moment is None:
        return as_uuid(digits, "5")
    return as_uuid(digits[:20] + (moment[3] or moment[1] + moment[2]), "8")
