"""Changes of the outbox's table: a waiting caller gets an answer once, then the row records it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import msgspec

from envelopes.codecs import emergence
from envelopes.envelope import ACK, CANCEL, DONE, ERROR, HELLO, Envelope
from neighborhoods.durable_tables import (
    OUTBOX_TRANSITIONS,
    OutboxEvent,
    OutboxState,
    OutboxStorage,
    OutgoingEnvelope,
)

OnAnswer = Callable[[OutgoingEnvelope, Envelope | None], Awaitable[None]]
"""Is told of every row that is over: the row in its last state, and the reply (None: expired, dropped).

It is awaited before the row is marked, so that a crash in between tells it once more rather than never:
it writes an answer down by (peer, id). It must not call the outbox, except ``put``.
"""

OnOver = Callable[[OutgoingEnvelope], None]
"""Hears of every row that is over, once the disk says so; a crash in between tells it nothing."""

OWES_NOTHING = (DONE, ERROR, CANCEL, ACK)
"""Verbs that end an exchange: once a peer has such a row, no answer is awaited."""

_FINAL = (DONE, HELLO, ERROR)
_DELIVERED = OUTBOX_TRANSITIONS["delivered"]


class OutboxTransitions:
    """Every change that ends a row goes through here, one row at a time, so that none is told twice."""

    def __init__(
        self,
        records: OutboxStorage,
        clock: Callable[[], int],
        on_answer: OnAnswer,
        on_over: OnOver = lambda row: None,
    ) -> None:
        self.records = records
        self.clock = clock
        self._on_answer = on_answer
        self._on_over = on_over
        self._turns = ReadWriteLock()
        self._answering: dict[tuple[str, str], asyncio.Event] = {}
        self._in_flight: dict[int, OutgoingEnvelope] = {}  # what ends while its batch is on its way leaves it
        self._dropped: set[int] = set()  # while their batch was on its way

    def between(self) -> AbstractAsyncContextManager[None]:
        """A moment in which nobody has been told of what is not marked yet."""
        return self._turns.exclusive()

    async def take(self, peer: str, most: int, octets: int, *, eggs: bool = False) -> list[OutgoingEnvelope]:
        """The next batch of a peer, in order, marked as handed to the transport.

        At most ``most`` rows, together not more than ``octets`` bytes unless the first alone has more.
        """
        async with self._turns.exclusive():
            now = self.clock()
            found = await self.records.due(peer, now, most, eggs=eggs)
            due = [row for row in found if row.expires_at > now]
            batch, size = due[:1], len(due[0].body) if due else 0
            for row in due[1:]:
                size += len(row.body)
                if size > octets:
                    break
                batch.append(row)
            for tries, numbers in _by_tries(batch).items():
                await self.records.move(numbers, OUTBOX_TRANSITIONS["queued"]["sent"], tries=tries + 1)
            self._in_flight |= {row.number: row for row in batch}
            return batch

    async def landed(
        self,
        batch: list[OutgoingEnvelope],
        replies: dict[int, Envelope],
        later: dict[int, int] | None = None,
        trouble: dict[int, str] | None = None,
    ) -> list[OutgoingEnvelope]:
        """A batch is over.

        ``replies`` go by row number; a row without one is queued again, for the moment in ``later`` or for
        now, with its ``trouble``. Returns what the peer accepted after it was dropped.
        """
        later, trouble = later or {}, trouble or {}
        async with self._turns.exclusive():
            still = [row for row in batch if self._in_flight.pop(row.number, None) is not None]
            kept, ended, back = [], [], dict[tuple[int, str], list[int]]()
            for row in still:
                reply = replies.get(row.number)
                if reply is None:
                    when = later.get(row.number, row.next_at)
                    back.setdefault((when, trouble.get(row.number, "")), []).append(row.number)
                elif _event_of(row, reply) == "kept":
                    kept.append(row.number)
                else:
                    ended.append((row, reply))
            if kept:
                await self.records.move(kept, _DELIVERED["kept"])
            for (when, words), numbers in back.items():
                await self.records.move(numbers, _DELIVERED["no reply"], next_at=when, trouble=words)
            await self._end_all(ended)
            dropped = [row for row in batch if row.number in self._dropped]
            self._dropped.difference_update(row.number for row in dropped)
            return [row for row in dropped if row.number in replies and replies[row.number].verb == ACK]

    async def answered(self, peer: str, reply: Envelope) -> bool:
        """An answer that came by itself or was fetched. False when no row of that peer waits for it."""
        if reply.verb not in _FINAL:
            return False
        key = (peer, reply.id)
        async with self._turns.shared():  # answers share commits, those to one id come one by one
            while (other := self._answering.get(key)) is not None:
                await other.wait()
            done = self._answering[key] = asyncio.Event()
            try:
                return await self._take_answer(peer, reply)
            finally:
                del self._answering[key]
                done.set()

    async def lost(self, row: OutgoingEnvelope, trouble: str) -> None:
        """A peer that accepted a row knows nothing of it any more: it is queued again, with the same id."""
        async with self._turns.exclusive():
            now = await self._again(row)
            if now is not None and (state := _after(now, "forgotten")):
                await self.records.move([row.number], state, next_at=0, trouble=trouble)

    async def hurry(self, row: OutgoingEnvelope) -> None:
        """A row that is not on its way is due now."""
        async with self._turns.exclusive():
            now = await self._again(row)
            state = None if now is None or row.number in self._in_flight else _after(now, "retried")
            if state is not None:
                await self.records.move([row.number], state, next_at=0)

    async def drop(self, row: OutgoingEnvelope) -> OutgoingEnvelope | None:
        """Ends a row that waits; returns it as it was, or None when it is over already."""
        async with self._turns.exclusive():
            now = await self._again(row)
            if now is None or (state := _after(now, "dropped")) is None:
                return None
            await self._on_answer(msgspec.structs.replace(now, state=state), None)
            await self.records.move([row.number], state)
            if self._in_flight.pop(row.number, None) is not None:
                self._dropped.add(row.number)
            self._on_over(now)
            return now

    async def release(self, row: OutgoingEnvelope) -> None:
        """Ends a row that goes on as another one: its answer is still to come."""
        async with self._turns.exclusive():
            await self.records.move([row.number], "dropped")
            self._in_flight.pop(row.number, None)

    async def expire(self) -> set[str]:
        """Ends what ran out of time and tells who waits (a crash in between tells nobody). Returns whose."""
        async with self._turns.exclusive():
            expired = await self.records.expire(self.clock())
            for row in expired:
                self._in_flight.pop(row.number, None)
                await self._on_answer(msgspec.structs.replace(row, state="expired"), None)
                self._on_over(row)
            return {row.peer for row in expired}

    async def _take_answer(self, peer: str, reply: Envelope) -> bool:
        found = await self.records.find_outgoing(reply.id)
        mine = (row for row in found if (row.peer, row.id) == (peer, reply.id) and _after(row, "answered"))
        row = next((row for row in mine if row.verb not in OWES_NOTHING), None)
        if row is None:
            return False
        await self._end(row, reply)
        self._in_flight.pop(row.number, None)
        return True

    async def _end_all(self, ended: list[tuple[OutgoingEnvelope, Envelope]]) -> None:
        """Together, so that their writes share commits. One that cannot be written leaves the others alone."""
        results = await asyncio.gather(*(self._end(*one) for one in ended), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _end(self, row: OutgoingEnvelope, reply: Envelope) -> None:
        state, answer = OUTBOX_TRANSITIONS[row.state][_event_of(row, reply)], emergence.encode(reply)
        trouble = str(reply.data.get("msg", "")) if state == "failed" else ""
        over = msgspec.structs.replace(row, state=state, answer=answer, trouble=trouble)
        await self._on_answer(over, reply)
        await self.records.move([row.number], state, answer=answer, trouble=trouble)
        self._on_over(over)

    async def _again(self, row: OutgoingEnvelope) -> OutgoingEnvelope | None:
        found = await self.records.find_outgoing(row.id)
        return next((now for now in found if now.number == row.number), None)


def _after(row: OutgoingEnvelope, event: OutboxEvent) -> OutboxState | None:
    return OUTBOX_TRANSITIONS.get(row.state, {}).get(event)


def _event_of(row: OutgoingEnvelope, reply: Envelope) -> OutboxEvent:
    if reply.verb == ACK:
        return "answered" if row.verb in OWES_NOTHING else "kept"
    return "refused" if reply.verb == ERROR else "answered"


def _by_tries(rows: list[OutgoingEnvelope]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row in rows:
        found.setdefault(row.tries, []).append(row.number)
    return found


class ReadWriteLock:
    """``alone`` waits for everybody and keeps everybody out; ``together`` shares with others of its kind.

    Who wants to be alone is not overtaken by later comers.
    """

    def __init__(self) -> None:
        self._sharing = 0
        self._nobody = asyncio.Event()
        self._nobody.set()
        self._gate = asyncio.Lock()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """A turn with nobody else."""
        async with self._gate:
            await self._nobody.wait()
            yield

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """A turn beside others that share."""
        async with self._gate:
            self._sharing += 1
            self._nobody.clear()
        try:
            yield
        finally:
            self._sharing -= 1
            if not self._sharing:
                self._nobody.set()
