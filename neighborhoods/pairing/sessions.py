"""All attempts of one daemon: found by id, ended in words, forgotten after a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from neighborhoods.errors import NoSuchPairingError
from neighborhoods.pairing.messages import State
from neighborhoods.pairing.session import DIFFER, EXPIRED, STOPPED, Ending, PairingSession

GRACE: Final = 10.0
"""Seconds that the asking side, with a yes on both sides perhaps, goes on asking after the time is over."""
KEPT: Final = 600.0
"""Seconds that an end is remembered, for those who ask again because an answer got lost."""
MOST_KEPT: Final = 64

_TEXTS: Final[dict[State, Ending]] = {"differ": DIFFER, "expired": EXPIRED, "stopped": STOPPED}


class PairingSessions:
    """Kept in memory only: a daemon that ends, ends them. Calls come from the event loop."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._by_id: dict[str, PairingSession] = {}
        self._joined: dict[str, str] = {}

    def add(self, attempt: PairingSession) -> PairingSession:
        """One more."""
        self._by_id[attempt.id] = attempt
        return attempt

    def get(self, attempt: str) -> PairingSession:
        """The one of that id, or that one which it went over into. Raises ``NoSuchPairingError``."""
        found = self.find(self._joined.get(attempt, attempt))
        if found is None:
            raise NoSuchPairingError("No such pairing is under way.", do="Start anew on both machines.")
        return found

    def find(self, attempt: str) -> PairingSession | None:
        """Exactly the one of that id, if there is one."""
        return self._by_id.get(attempt)

    def live(self) -> list[PairingSession]:
        """Those that may still end well, the oldest first."""
        return [one for one in self._by_id.values() if one.live]

    def join(self, ours: PairingSession, kept: PairingSession) -> None:
        """``ours`` goes over into ``kept``: its id now leads there, and its own talking ends."""
        kept.whose = kept.whose or ours.whose
        self._by_id.pop(ours.id, None)
        self._joined = {old: kept.id if new == ours.id else new for old, new in self._joined.items()} | {
            ours.id: kept.id
        }
        self._silence(ours)
        ours.become("stopped")

    def end(self, attempt: PairingSession, state: State, ending: Ending | None = None) -> None:
        """Ends a live one; what is over, or just being written down, stays. Its secrets are forgotten."""
        if not attempt.live or attempt.settling:
            return
        if state != "paired":
            attempt.trouble, attempt.do = ending or _TEXTS[state]
        attempt.ended_at = self._now()
        attempt.code, attempt.nonce = "", b""
        self._silence(attempt)
        attempt.become(state)

    def clear(self) -> None:
        """Ends what is out of time, forgets what ended long ago."""
        now = self._now()
        for one in self.live():
            if now >= one.expires_at + (GRACE if one.role == "asks" and one.yes else 0):
                self.end(one, "expired")
        ended = sorted((one for one in self._by_id.values() if not one.live), key=lambda one: one.ended_at)
        for number, one in enumerate(reversed(ended)):
            if number >= MOST_KEPT or now - one.ended_at > KEPT:
                del self._by_id[one.id]
        self._joined = {old: new for old, new in self._joined.items() if new in self._by_id}

    def _silence(self, attempt: PairingSession) -> None:
        task, attempt.task = attempt.task, None
        if task is not None and task is not asyncio.current_task():
            task.cancel()
