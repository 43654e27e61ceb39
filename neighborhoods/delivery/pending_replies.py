"""Callers who wait for an answer that comes later: first an ACK, then a DONE at this machine's own listener."""

from __future__ import annotations

import asyncio

from envelopes.envelope import DONE, ERROR, HELLO, Envelope
from neighborhoods.errors import NeighborhoodError

_FINAL = (DONE, ERROR, HELLO)


class ReplyWait:
    """One caller's place. It holds an answer that comes before ``within`` is awaited, too."""

    def __init__(self) -> None:
        self._future: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()

    async def within(self, seconds: float) -> Envelope | None:
        """The DONE or ERROR; None when it has not come in so many seconds (it may be awaited again).

        Raises what the wait was ended with.
        """
        done, _ = await asyncio.wait((self._future,), timeout=max(0.0, seconds))
        return self._future.result() if done else None

    def _answered(self, reply: Envelope) -> None:
        if not self._future.done():
            self._future.set_result(reply)

    def _ended(self, error: NeighborhoodError) -> None:
        if not self._future.done():
            self._future.set_exception(error)
            self._future.exception()  # an exception that nobody fetches is not logged


class ReplySlot:
    """A block with one caller's place in it.

    (``contextlib`` takes three times as long.)
    """

    def __init__(self, waiting: _Waiting, key: tuple[str, str]) -> None:
        self._waiting = waiting
        self._key = key
        self._expected = ReplyWait()

    def __enter__(self) -> ReplyWait:
        self._waiting.setdefault(self._key, []).append(self._expected)
        return self._expected

    def __exit__(self, *_: object) -> None:
        places = self._waiting[self._key]
        places.remove(self._expected)
        if not places:
            del self._waiting[self._key]


_Waiting = dict[tuple[str, str], list[ReplyWait]]


class PendingReplies:
    """Waiting callers, by peer (its fingerprint) and envelope id. In memory only; the outbox is durable."""

    def __init__(self) -> None:
        self._waiting: _Waiting = {}

    def __len__(self) -> int:
        return sum(len(places) for places in self._waiting.values())

    def expected(self, peer: str, id: str) -> ReplySlot:
        """A place for as long as the block lasts.

        Take it before sending: the answer may be faster than the ACK. Several may wait for one id.
        """
        return ReplySlot(self._waiting, (peer, id.lower()))

    def answered(self, peer: str, reply: Envelope) -> bool:
        """Hands a DONE or ERROR of that peer to who waits for it; whether anybody did."""
        if reply.verb not in _FINAL:
            return False
        places = self._waiting.get((peer, reply.id.lower()), [])
        for place in places:
            place._answered(reply)
        return bool(places)

    def ended(self, peer: str, id: str, error: NeighborhoodError) -> bool:
        """Tells who waits that no answer will come; whether anybody did."""
        places = self._waiting.get((peer, id.lower()), [])
        for place in places:
            place._ended(error)
        return bool(places)
