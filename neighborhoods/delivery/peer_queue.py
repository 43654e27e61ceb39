"""One peer's queue under way: a task that lives as long as something waits for that peer."""

from __future__ import annotations

import asyncio
import logging
import random as randomness
from collections.abc import Callable

import msgspec

from neighborhoods.delivery.delivery_route import BatchTransport
from neighborhoods.delivery.outbox_state import OutboxTransitions
from neighborhoods.delivery.reply_outcomes import ReplyOutcomes, about_fetching, refusal_for, sort_replies
from neighborhoods.delivery.retry import Random, RetryPolicy
from neighborhoods.durable_tables import OutgoingEnvelope
from neighborhoods.errors import (
    DeclinedError,
    KeyChangedError,
    NotPairedError,
    PeerOfflineError,
    PeerRefusedError,
    RetriableError,
)
from neighborhoods.peer import Peer

_log = logging.getLogger(__name__)
_UNAUTHENTICATED = 401
"""The status of a peer that does not take this machine for who it is: a clock may be wrong. No call is at fault."""
_SECOND = 1_000_000
_LOOKED_UP = 5  # after one batch; a busy peer is not asked about everything


class QueueContext(msgspec.Struct, frozen=True):
    """Collaborators that all queues share.

    ``unwanted`` gets the replies of what a peer accepted after it was dropped. ``eggs``: these queues carry eggs,
    the others everything else, so that no call waits behind a file.
    """

    ledger: OutboxTransitions
    transport: BatchTransport
    book: Callable[[str], Peer | None]
    unwanted: Callable[[OutgoingEnvelope], None]
    pace: RetryPolicy = RetryPolicy()
    random: Random = randomness.random
    eggs: bool = False


class PeerQueue:
    """Sends what is due to one peer, a batch at a time, rests while it is away, asks for late answers.

    ``trouble`` says why nothing goes out, "" while all is well. ``stopped``: only ``clear`` helps, and, after
    another key answered, a sign of life that proves the peer's own.
    """

    def __init__(
        self, peer: str, context: QueueContext, ended: Callable[[PeerQueue], None], *, ask_now: bool
    ) -> None:
        self.peer = peer
        self.trouble = ""
        self.stopped = False
        self._context = context
        self._pace = context.pace
        self._ledger = context.ledger
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._wake = asyncio.Event()
        self._failures = self._in_vain = 0
        self._is_early = False  # the rest was ended by a sign of life
        self._failed_at = self._rests_until = float("-inf")
        self._at_work = self._heard_at_work = False
        self._misled = False  # another key answered; only the peer's own can settle that
        self._firm = False  # the peer itself said until when it wants to be left alone
        self._asked_at = float("-inf")
        self._asks_at = self._loop.time() + (0.0 if ask_now else self._pace.ask_every)
        self._asked: dict[int, float] = {}
        self._one_by_one = 0  # up to this row: a batch with it was refused as a whole
        self._stepping: list[asyncio.Future[None]] = []
        name = f"outbox {peer[:4]}{' eggs' if context.eggs else ''}"
        self.task = self._loop.create_task(self._run(), name=name)

    @property
    def eggs(self) -> bool:
        """True for a queue of eggs."""
        return self._context.eggs

    @property
    def rests(self) -> float:
        """Seconds until the next try; 0 when nothing is held back."""
        return max(0.0, self._rests_until - self._loop.time())

    def after_step(self) -> asyncio.Future[None]:
        """Is done once it has tried something more, or found nothing to try."""
        future: asyncio.Future[None] = self._loop.create_future()
        self._stepping.append(future)
        return future

    def wake(self) -> None:
        """Has the queue look for new rows."""
        self._wake.set()

    def heard(self) -> None:
        """The peer showed that it is there: the pause ends, and late answers are asked for."""
        if self._at_work:  # a way of our own to it, or news that matter only if this try fails
            self._heard_at_work = True
            return
        if self._misled:
            self.clear()  # the impostor is gone, or not at every address
        if not self._firm:
            self._end_rest_early()
        self._asks_at = min(self._asks_at, max(self._loop.time(), self._asked_at + self._pace.ask_gap))
        self._wake.set()

    def clear(self, *, ask: bool = False) -> None:
        """Ends what held it back: the peer is paired again, or a person wants it tried."""
        self.trouble, self.stopped, self._firm, self._failures = "", False, False, 0
        self._in_vain, self._is_early = 0, False
        self._misled = False
        self._rests_until = float("-inf")
        if ask:
            self._asks_at = self._loop.time()
            self._asked.clear()
        self._wake.set()

    async def _run(self) -> None:
        try:
            await self._keep_going()
        finally:
            self._stepped()

    async def _keep_going(self) -> None:
        while True:
            self._wake.clear()
            self._at_work, self._heard_at_work = True, False
            try:
                seconds = await self._step()
            except Exception:  # noqa: BLE001 - a full disk, say, must not end the queue
                _log.exception("The outbox for %s stumbled; it goes on after a pause.", self.peer[:4])
                seconds = self._rest()
            self._at_work = False
            if self._misled and self._heard_at_work:
                self.heard()  # nothing else would start it again
            self._stepped()
            if seconds is None:
                if not self._wake.is_set():
                    self._ended(self)
                    return
            elif seconds > 0:
                try:
                    async with asyncio.timeout(seconds):
                        await self._wake.wait()
                except TimeoutError:
                    pass

    def _stepped(self) -> None:
        for future in self._stepping:
            if not future.done():
                future.set_result(None)
        self._stepping.clear()

    async def _step(self) -> float | None:
        """Does what is due. Returns the seconds until something may be due again, None for nothing waits."""
        if self.stopped:
            return self._pace.ask_every if await self._waiting(1) else None
        if self.rests:
            return self.rests
        if self._loop.time() >= self._asks_at:
            await self._ask()
            if self.stopped or self.rests:
                return self.rests
        peer = self._context.book(self.peer)
        if peer is None:
            self._stop("It is not a peer of this machine any more.")
            return 0.0
        batch = await self._take()
        if batch:
            await self._send(peer, batch)
            return 0.0
        return await self._until_due()

    async def _until_due(self) -> float | None:
        waiting = await self._waiting(1000)
        if not waiting:
            return None
        seconds = self._pace.ask_every
        if any(row.state == "accepted" for row in waiting):
            seconds = min(seconds, self._asks_at - self._loop.time())
        now = self._ledger.clock()
        if any(row.expires_at <= now for row in waiting):
            await self._ledger.expire()
            return 0.0
        for row in waiting:
            ahead = (row.next_at - now) / _SECOND
            if row.state != "accepted" and ahead > 2 * self._pace.longest_pause:
                await self._ledger.hurry(row)  # the clock was set back
                seconds = 0.0
            elif row.state != "accepted":
                seconds = min(seconds, ahead)
        return max(0.001, seconds)

    async def _take(self) -> list[OutgoingEnvelope]:
        batch = await self._ledger.take(
            self.peer,
            1 if self._one_by_one or self.eggs else self._pace.batch,
            self._pace.batch_octets,
            eggs=self.eggs,
        )
        if batch and batch[0].number >= self._one_by_one:
            self._one_by_one = 0
        return batch

    async def _send(self, peer: Peer, batch: list[OutgoingEnvelope]) -> None:
        try:
            replies = await self._context.transport.send_batch(peer, [row.body for row in batch])
        except Exception as error:  # noqa: BLE001 - whatever a carrier stumbles over, the rows are kept
            await self._not_sent(batch, error)
            return
        now = self._ledger.clock()
        found = sort_replies(batch, replies, now, lambda tries: self._pace.pause(tries, self._context.random))
        await self._look_up(peer, [row for row in batch if row.number in found.unclear][:_LOOKED_UP], found)
        if found.distrusted:
            self._stop(found.distrusted)
        elif found.busy:
            self._rest(trouble=found.trouble.get(batch[-1].number, ""))
        else:
            self.clear()
        for row in await self._ledger.landed(batch, found.replies, found.later, found.trouble):
            self._context.unwanted(row)

    async def _look_up(self, peer: Peer, rows: list[OutgoingEnvelope], found: ReplyOutcomes) -> None:
        """A 503 to what was sent before is either "not now" or the recorded end of the work: the peer's record tells."""
        for row in rows:
            try:
                reply = await self._context.transport.fetch(peer, row.id, row.body)
            except Exception as error:  # noqa: BLE001 - it is queued again, and looked up the next time
                _log.info("The answer to %s could not be looked up: %s", row.id, error)
                return
            if reply is not None and reply.id.lower() == row.id.lower() and about_fetching(reply) is None:
                found.replies[row.number] = reply

    async def _not_sent(self, batch: list[OutgoingEnvelope], error: Exception) -> None:
        """The whole batch came back."""
        if isinstance(error, DeclinedError) and error.answered == _UNAUTHENTICATED:
            self._rest(trouble=str(error))
        elif isinstance(error, PeerRefusedError):
            if len(batch) == 1:
                status, reason = getattr(error, "answered", error.status), getattr(error, "reason", "")
                reply = refusal_for(batch[0], status, str(error), reason or error.code)
                await self._ledger.landed(batch, {batch[0].number: reply})
                return
            self._one_by_one = batch[-1].number  # one of them is at fault: it is found by sending each alone
        else:
            self._hold(error)
        await self._ledger.landed(batch, {}, trouble=dict.fromkeys((row.number for row in batch), str(error)))

    def _hold(self, error: Exception) -> None:
        """Stops or rests, as the error asks for."""
        if isinstance(error, KeyChangedError | NotPairedError):
            self._stop(str(error))
            self._misled = isinstance(error, KeyChangedError)
        elif isinstance(error, RetriableError):
            self._rest(error.retry_after, str(error))
        else:
            if not isinstance(error, PeerOfflineError):
                _log.error("A batch for %s could not be sent.", self.peer[:4], exc_info=error)
            self._rest(trouble=str(error))
            if self._heard_at_work:
                self._end_rest_early()

    def _end_rest_early(self) -> None:
        """After a sign of life: a try soon. Tries that fail in spite of such signs come ever later, too."""
        gap = self._pace.try_gap * 2.0 ** min(self._in_vain, 30)
        early = self._failed_at + min(gap, self._pace.longest_pause)
        if early < self._rests_until:
            self._rests_until, self._is_early = early, True

    async def _ask(self) -> None:
        """Fetches the answers of accepted rows, those first that were not asked for the longest."""
        now = self._asked_at = self._loop.time()
        self._asks_at = now + self._pace.ask_every
        accepted = [row for row in await self._waiting(1000) if row.state == "accepted"]
        self._asked = {row.number: self._asked.get(row.number, float("-inf")) for row in accepted}
        turn = sorted(accepted, key=lambda row: (self._asked[row.number], row.number))
        peer = self._context.book(self.peer)
        if peer is None:
            return
        for row in turn[: self._pace.asked_at_once]:
            try:
                reply = await self._context.transport.fetch(peer, row.id, row.body)
            except PeerRefusedError as error:
                _log.warning("The answer to %s could not be fetched: %s", row.id, error)
                self._asked[row.number] = now
                continue
            except Exception as error:  # noqa: BLE001 - as for sending
                self._hold(error)
                return
            self._asked[row.number] = now
            if reply is not None and (problem := about_fetching(reply)) is not None:
                self._hold(problem)
                return
            if reply is None:
                await self._ledger.lost(row, "The peer did not know of it any more.")
            elif reply.id.lower() == row.id.lower():
                await self._ledger.answered(self.peer, reply)
        if len(turn) > self._pace.asked_at_once and self._asked[turn[self._pace.asked_at_once].number] < now:
            self._asks_at = now + self._pace.ask_every * self._pace.asked_at_once / len(turn)

    async def _waiting(self, most: int) -> list[OutgoingEnvelope]:
        return await self._ledger.records.outgoing(waiting=True, peer=self.peer, most=most, eggs=self.eggs)

    def _stop(self, trouble: str) -> None:
        self.stopped, self.trouble = True, trouble

    def _rest(self, asked_for: float | None = None, trouble: str = "") -> float:
        self._failures += 1
        self._in_vain += self._is_early
        self._is_early = False
        seconds = self._pace.pause(self._failures, self._context.random)
        self._firm = asked_for is not None
        if asked_for is not None:
            seconds = max(seconds, min(asked_for, self._pace.longest_pause))
        self._failed_at = self._loop.time()
        self._rests_until = self._failed_at + seconds
        self.trouble = trouble
        return seconds
