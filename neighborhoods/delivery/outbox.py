"""The outbox: envelopes for peers, durable, in order for each, sent once they are reachable, answered once."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import logging
import random as randomness
from collections.abc import Callable, Collection

import msgspec

from envelopes.codecs import emergence
from envelopes.envelope import CANCEL, SIG, Envelope
from envelopes.errors import ReportableError
from neighborhoods.delivery.delivery_route import EnvelopeTransport
from neighborhoods.delivery.egg_sender import EggSender
from neighborhoods.delivery.outbox_state import OnAnswer, OnOver, OutboxTransitions
from neighborhoods.delivery.peer_queue import PeerQueue, QueueContext
from neighborhoods.delivery.retry import Random, RetryPolicy
from neighborhoods.durable_tables import EGG, WAITING, OutboxStorage, OutgoingEnvelope
from neighborhoods.errors import NoSuchPeerError, OutboxConflictError
from neighborhoods.peer import Peer

DAY = 86_400.0
_SECOND = 1_000_000
_CANCEL_SECONDS = 10.0
_STOP_SECONDS = 5.0

_log = logging.getLogger(__name__)


class OutboxOwner(msgspec.Struct, frozen=True):
    """The machine whose outbox it is: it knows the peers, and hears of every row that is over."""

    peer: Callable[[str], Peer | None]
    """The paired peer of a fingerprint."""
    on_answer: OnAnswer
    on_over: OnOver = lambda row: None
    """Is told when what ``on_answer`` was told is on the disk."""
    verbs: Callable[[str], Collection[str]] = lambda _: ()
    """The extension verbs that a peer announced."""


class OutboxTiming(msgspec.Struct, frozen=True):
    """``clock`` gives microseconds since 1970, ``pace`` the pauses, ``random`` what spreads them."""

    clock: Callable[[], int]
    pace: RetryPolicy = RetryPolicy()
    random: Random = randomness.random


class Outbox:
    """The outbox of one machine; belongs to the loop it is used on.

    ``eggs`` sends what has the verb ``EGG``, in queues of their own.
    A peer costs a task while something waits for it, and nothing otherwise.
    """

    def __init__(
        self,
        records: OutboxStorage,
        transport: EnvelopeTransport,
        owner: OutboxOwner,
        timing: OutboxTiming,
        *,
        eggs: EggSender | None = None,
    ) -> None:
        self._records = records
        self._transport = transport
        self._owner = owner
        self._clock = timing.clock
        self._pace = timing.pace
        self._eggs = eggs
        self._ledger = OutboxTransitions(records, timing.clock, owner.on_answer, self._over)
        self._context = QueueContext(
            self._ledger, transport, owner.peer, self._unwanted, timing.pace, timing.random
        )
        self._egg_context = self._context
        if eggs is not None:
            self._egg_context = msgspec.structs.replace(self._context, transport=eggs, eggs=True)
        self._queues: dict[tuple[str, bool], PeerQueue] = {}  # by peer, and whether it is one of eggs
        self._sweeper: asyncio.Task[None] | None = None
        self._soon: list[int] = []  # ends that come before the next sweep
        self._sweep_now = asyncio.Event()
        self._saying: set[asyncio.Task[None]] = set()
        self._closed = False

    async def put(
        self, peer: str, envelope: Envelope, what: str, ttl: float = DAY, *, accepted: bool = False
    ) -> int:
        """Keeps an envelope for a peer (its fingerprint) and returns its number; it is on the disk then.

        ``what`` is for screens, ``ttl`` the seconds after which nobody wants it any more. ``accepted``: the
        peer has it already, and only the answer is waited for. The same (peer, id, verb) is kept once.
        """
        now = self._clock()
        item = OutgoingEnvelope(
            number=0,
            peer=peer,
            id=envelope.id,
            verb=envelope.verb,
            thread=envelope.thread,
            what=what,
            body=emergence.encode(envelope),
            state="accepted" if accepted else "queued",
            tries=0,
            created_at=now,
            next_at=0,  # not a moment of a clock that may be set back: who came first goes first
            expires_at=now + int(ttl * _SECOND),
        )
        number = await self._records.put(item)
        if ttl <= self._pace.sweep_every:
            heapq.heappush(self._soon, item.expires_at)
            self._sweep_now.set()
        if not self._closed:
            self._queue(peer, eggs=envelope.verb == EGG).wake()
        return number

    async def try_now(self, row: OutgoingEnvelope, *, within: float) -> OutgoingEnvelope:
        """Tries what waits, whatever held it back, and says how it stands after that.

        Where others of its kind go first, and for longer than ``within`` seconds, it is as it was.
        """
        queue = self._queue(row.peer, eggs=row.verb == EGG)
        queue.clear()
        loop = asyncio.get_running_loop()
        until = loop.time() + within
        while True:
            stepped = queue.after_step()
            now = await self._records.by_id(row.peer, row.id) or row
            tried = now.state not in ("queued", "delivered") or (
                now.state == "queued" and now.tries > row.tries
            )
            if tried or queue.task.done() or (now.state == "queued" and (queue.stopped or queue.rests)):
                return self._as_held(now, self._clock())
            if now.state == "delivered":
                await stepped
                continue
            await asyncio.wait((stepped,), timeout=max(0.0, until - loop.time()))
            if not stepped.done():
                return self._as_held(now, self._clock())

    async def resume(self) -> int:
        """After a start: takes up whatever waits. Returns how many rows that are."""
        await self._ledger.expire()
        waiting = await self._records.peers_waiting()
        for peer, count in waiting.items():
            if count:
                for eggs in (False, True) if self._eggs else (False,):
                    self._queue(peer, eggs=eggs, ask_now=True).wake()
        return sum(waiting.values())

    async def stop(self) -> None:
        """Ends all tasks. What was under way is on the disk, and is sent again after ``resume``."""
        self._closed = True
        try:
            async with asyncio.timeout(_STOP_SECONDS), self._ledger.between():
                tasks = self._cancel_all()
        except TimeoutError:
            tasks = self._cancel_all()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def answered(self, peer: str, reply: Envelope) -> bool:
        """A DONE or ERROR that a peer pushed.

        True when it is on the disk as the answer of a row; False when no row of that peer waits for it:
        unknown, or answered before.
        """
        found = await self._ledger.answered(peer, reply)
        if found and (queue := self._queues.get((peer, False))) is not None:
            queue.wake()
        return found

    def heard_from(self, peer: str) -> None:
        """Any sign of life of a peer that proved its key: pauses end, and what waits goes at once."""
        for queue in self._queues_of(peer):
            queue.heard()

    def cleared(self, peer: str) -> None:
        """Restarts a peer's queue: it was paired again, or its key is known."""
        for queue in self._queues_of(peer):
            queue.clear(ask=True)

    async def retry(self, id: str) -> OutgoingEnvelope:
        """Tries now: sends what is queued, asks for the answer of what is accepted.

        ``id`` may be shortened. Raises ``not_in_outbox``, and ``OutboxConflictError`` for what is over.
        """
        row = await self._one(id)
        if row.state not in WAITING:
            raise OutboxConflictError(f"That is {row.state} already.", do="Make the call again.")
        await self._ledger.hurry(row)
        self._queue(row.peer, eggs=row.verb == EGG).clear(ask=row.state == "accepted")
        return row

    async def drop(self, id: str) -> OutgoingEnvelope:
        """Cancels a waiting row.

        A peer that may work on it is told, if it knows CANCEL; it may be late. Raises like ``retry``.
        """
        row = await self._ledger.drop(await self._one(id))
        if row is None:
            raise OutboxConflictError("That is over already.", do="There is nothing left to drop.")
        if row.state == "accepted":
            self._unwanted(row)
        if (queue := self._queue_of(row)) is not None:
            queue.wake()
        return msgspec.structs.replace(row, state="dropped")

    async def move_to(self, row: OutgoingEnvelope, peer: str, envelope: Envelope, ttl: float = DAY) -> int:
        """Keeps ``envelope`` for another peer in the place of a row that waits; that row's end is not reported."""
        number = await self.put(peer, envelope, row.what, ttl)
        await self._ledger.release(row)
        if (queue := self._queue_of(row)) is not None:
            queue.wake()
        return number

    async def listing(
        self, *, waiting: bool = False, peer: str = "", most: int = 1000
    ) -> list[OutgoingEnvelope]:
        """Rows, the oldest first. ``next_at`` (0: at once) and ``trouble`` also tell of a queue that is held back."""
        rows = await self._records.outgoing(waiting=waiting, peer=peer, most=most)
        now = self._clock()
        return [self._as_held(row, now) for row in rows]

    def trouble(self, peer: str) -> str:
        """Returns the reason why nothing goes to a peer; "" when nothing is in the way, or nothing waits."""
        return next((queue.trouble for queue in self._queues_of(peer) if queue.trouble), "")

    def stopped(self, peer: str, *, eggs: bool = False) -> bool:
        """True when a peer's queue is stopped until its owner, or the peer itself, does something about it."""
        queue = self._queues.get((peer, eggs))
        return queue is not None and queue.stopped

    def _queues_of(self, peer: str) -> list[PeerQueue]:
        return [queue for eggs in (False, True) if (queue := self._queues.get((peer, eggs))) is not None]

    def _queue_of(self, row: OutgoingEnvelope) -> PeerQueue | None:
        return self._queues.get((row.peer, row.verb == EGG and self._eggs is not None))

    def _over(self, row: OutgoingEnvelope) -> None:
        if row.verb == EGG and self._eggs is not None:
            self._eggs.stop(row.id)
        self._owner.on_over(row)

    def _cancel_all(self) -> list[asyncio.Task[None]]:
        tasks = [queue.task for queue in self._queues.values()] + list(self._saying)
        tasks += [self._sweeper] if self._sweeper is not None else []
        self._queues.clear()
        for task in tasks:
            task.cancel()
        return tasks

    def _as_held(self, row: OutgoingEnvelope, now: int) -> OutgoingEnvelope:
        queue = self._queue_of(row)
        if queue is None or row.state != "queued":
            return row
        next_at = max(row.next_at, now + int(queue.rests * _SECOND)) if queue.rests else row.next_at
        return msgspec.structs.replace(row, next_at=next_at, trouble=row.trouble or queue.trouble)

    def _queue(self, peer: str, *, eggs: bool = False, ask_now: bool = False) -> PeerQueue:
        eggs = eggs and self._eggs is not None
        queue = self._queues.get((peer, eggs))
        if queue is None:
            if self._closed:
                raise OutboxConflictError(
                    "The outbox is closed; what was put in it goes out after the next start."
                )
            context = self._egg_context if eggs else self._context
            queue = self._queues[peer, eggs] = PeerQueue(peer, context, self._ended, ask_now=ask_now)
            if self._sweeper is None:
                self._sweeper = asyncio.get_running_loop().create_task(self._sweep(), name="outbox sweep")
        return queue

    def _ended(self, queue: PeerQueue) -> None:
        if self._queues.get((queue.peer, queue.eggs)) is queue:
            del self._queues[queue.peer, queue.eggs]
        self._sweep_now.set()

    async def _sweep(self) -> None:
        """Ends what ran out of time, as long as anything waits."""
        loop = asyncio.get_running_loop()
        regular = loop.time()
        while self._queues:
            self._sweep_now.clear()
            ahead = regular - loop.time()
            if self._soon:
                ahead = min(ahead, (self._soon[0] - self._clock()) / _SECOND)
            if ahead > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(ahead):
                        await self._sweep_now.wait()
                continue
            regular = loop.time() + self._pace.sweep_every
            while self._soon and self._soon[0] <= self._clock():
                heapq.heappop(self._soon)
            try:
                for peer in await self._ledger.expire():
                    for queue in self._queues_of(peer):
                        queue.wake()
            except Exception:  # noqa: BLE001 - the next sweep finds the same rows
                _log.exception("The outbox could not look for what ran out of time.")
        self._sweeper = None

    async def _one(self, id: str) -> OutgoingEnvelope:
        found = await self._records.find_outgoing(id) if id else []
        found = [row for row in found if row.state in WAITING] or found
        if not found:
            raise NoSuchPeerError(
                f"Nothing in the outbox goes by '{id}'.",
                do="rappd outbox list shows what is there.",
                code="not_in_outbox",
            )
        if len(found) > 1:
            raise OutboxConflictError(f"'{id}' begins {len(found)} ids.", do="Give more of the id.")
        return found[0]

    def _unwanted(self, row: OutgoingEnvelope) -> None:
        peer = self._owner.peer(row.peer)
        if peer is None or CANCEL not in self._owner.verbs(row.peer) or self._closed:
            return
        task = asyncio.get_running_loop().create_task(self._say_cancel(peer, row))
        self._saying.add(task)
        task.add_done_callback(self._saying.discard)

    async def _say_cancel(self, peer: Peer, row: OutgoingEnvelope) -> None:
        asked = emergence.decode(row.body, max_bytes=len(row.body))
        extensions = {key: value for key, value in asked.extensions.items() if key != SIG}
        cancel = msgspec.structs.replace(asked, verb=CANCEL, data={}, extensions=extensions)
        try:
            await self._transport.send(peer, emergence.encode(cancel), wait=_CANCEL_SECONDS)
        except (ReportableError, OSError, TimeoutError) as error:
            _log.info("A peer could not be told that %s was dropped: %s", row.id, error)
