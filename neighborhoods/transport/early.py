"""Answers that are told while they are on their way to the disk of who gives them, and count once they are there.

On a line of ``rappd.3`` a binary frame is one such answer, or ids, of those that are on the disk by now. So the
disk of one machine and all that the other does with an answer take their time side by side.
"""

from __future__ import annotations

from collections.abc import Callable

from envelopes.codecs import wire
from envelopes.codecs.emergence import MAX_BYTES
from envelopes.envelope import DONE, ERROR, Envelope

ID_BYTES = 36

OnEarly = Callable[[Envelope], None]


class EarlyReplies:
    """Those that came to one end of a line."""

    def __init__(self) -> None:
        self._asked: dict[str, OnEarly | None] = {}
        self._came: dict[str, Envelope] = {}

    def expect(self, id: str, listener: OnEarly | None) -> None:
        """That was asked here. ``listener`` is told what it comes to before that counts."""
        self._asked[id] = listener

    def forget(self, id: str) -> None:
        """Nobody waits for that any more."""
        self._asked.pop(id, None)
        self._came.pop(id, None)

    def hear(self, frame: bytes) -> list[Envelope]:
        """Takes a binary frame in: the answers that count from now on. Raises ``MalformedError``."""
        if frame.startswith(b"{"):
            self._keep(wire.decode(frame, max_bytes=MAX_BYTES))
            return []
        ids = (frame[at : at + ID_BYTES].decode("ascii", "replace") for at in range(0, len(frame), ID_BYTES))
        return [reply for id in ids if (reply := self._came.pop(id, None)) is not None]

    def _keep(self, reply: Envelope) -> None:
        """What was not asked for here, comes again or answers nothing is passed over: nobody counts on it."""
        if reply.verb not in (DONE, ERROR) or reply.id not in self._asked or reply.id in self._came:
            return
        self._came[reply.id] = reply
        if (listener := self._asked[reply.id]) is not None:
            listener(reply)
