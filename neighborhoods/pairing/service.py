"""Pairing, for the daemon: its owner asks, confirms, stops and waits; its listener hands over what strangers say."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

from envelopes.identity.keys import IdentityKey
from envelopes.identity.node_card import NodeCard
from envelopes.identity.pairing_proof import normal_code, sign_verdict
from neighborhoods.errors import PairingStoppedError, PeerConflictError
from neighborhoods.pairing.code_pairing import CodePairing
from neighborhoods.pairing.initiator import WORDS_SECONDS, Initiator
from neighborhoods.pairing.local_party import Known, LocalParty, OnPaired, Send
from neighborhoods.pairing.messages import (
    Code,
    Confirm,
    Offer,
    Poll,
    Reveal,
    State,
    Stop,
    VerdictReply,
    read_step,
)
from neighborhoods.pairing.pairing_states import PairingAttempt, PairingAttempts, PairingEvent
from neighborhoods.pairing.responder import Responder
from neighborhoods.peer import Whose

log = logging.getLogger("pairing")


class PairingService:
    """One per daemon; calls come from its event loop. Attempts are named by id, also after they were joined.

    ``on_asked`` gets each session that another machine began.
    ``introduction`` gives this machine's own as it is now, ``now`` seconds that only go forward,
    ``within`` how many of them two owners have.
    """

    def __init__(
        self,
        key: IdentityKey,
        introduction: Callable[[], NodeCard],
        send: Send,
        on_paired: OnPaired,
        *,
        known: Known,
        now: Callable[[], float] = time.monotonic,
        poll: float = 1.0,
        within: float = WORDS_SECONDS,
        on_asked: Callable[[PairingAttempt], None] = lambda _: None,
    ) -> None:
        self._now = now
        self._on_asked = on_asked
        self._attempts = PairingAttempts(now)
        self._here = LocalParty(key, introduction, send, on_paired, known, now, self._attempts, poll, within)
        self._asking = Initiator(self._here)
        self._answering = Responder(self._here)
        self._codes = CodePairing(self._here)
        self._tasks: set[asyncio.Task[None]] = set()

    def now(self) -> float:
        """The clock that attempts go by."""
        return self._now()

    async def ask(self, peer: NodeCard, address: str, whose: Whose | None = None) -> PairingAttempt:
        """Asks ``peer`` for words; or goes on with a session of the two that is under way.

        Raises ``KeyChangedError``, ``PeerConflictError``, ``BadNodeCardError``; what comes later is in the attempt.
        """
        self._attempts.clear()
        self._here.meet(peer)
        host = _host_of(address)
        for one in self._attempts.live():
            if (
                not one.by_code
                and one.fingerprint == peer.fingerprint
                and (one.role == "asks" or one.host == host)
            ):
                one.whose = whose or one.whose
                return one
        attempt = self._asking.begin(peer, address, whose)
        attempt.task = self._spawn(self._asking.drive(attempt), attempt)
        return attempt

    async def confirm(self, attempt: str, same: bool, whose: Whose | None = None) -> PairingAttempt:
        """Takes the owner's verdict on the words: a yes needs ``whose``, here or when it was asked.

        Raises ``PairingStoppedError`` with the reason when it is over, ``PeerConflictError``, ``NoSuchPairingError``.
        """
        self._attempts.clear()
        one = self._attempts.get(attempt)
        async with one.lock:
            if one.state == "paired" and same:
                return one
            if not one.live:
                raise one.problem() or PairingStoppedError(
                    f"{one.name} is paired already.", do=f"Undo: rappd peers revoke {one.name}"
                )
            if not one.transcript:
                raise PeerConflictError(
                    "There are no words to compare yet.", do="Wait for them on both machines."
                )
            one.whose = whose or one.whose
            if same and one.whose is None:
                raise PeerConflictError(f"Whose is {one.name}?", do="Say mine or friend.")
            if one.verdict is None or one.verdict.same != same:
                signature = sign_verdict(self._here.key, one.transcript, same)
                one.verdict = VerdictReply(same, signature.hex())
            if not same:
                self._end(one, "no")
                return one
            one.happen("yes")
            if one.role == "answers":
                await self._answering.settle_if_both(one)
            return one

    async def stop(self, attempt: str) -> PairingAttempt:
        """The owner does not want any more; what is over stays as it ended."""
        one = self._attempts.get(attempt)
        async with one.lock:
            if one.live:
                one.verdict = None
                self._end(one, "stopped")
        return one

    async def offer_code(self, whose: Whose = "friend") -> PairingAttempt:
        """A code to type on another machine within ten minutes; ``whose`` is what it becomes here."""
        self._attempts.clear()
        return self._codes.offer(whose)

    async def use_code(self, address: str, peer: NodeCard, code: str, whose: Whose) -> PairingAttempt:
        """Pairs by the code that ``peer`` shows. Raises ``bad_code`` and what ``ask`` raises."""
        self._attempts.clear()
        typed = normal_code(code)
        attempt = self._codes.begin(self._here.meet(peer), address, typed, whose)
        attempt.task = self._spawn(self._codes.drive(attempt), attempt)
        return attempt

    async def answer(self, body: object, remote_address: str) -> dict[str, Any]:
        """Returns the answer to a body from the host ``remote_address``. Raises ``ReportableError`` alone."""
        self._attempts.clear()
        match read_step(body):
            case Offer() as offer:
                before = {one.id for one in self.asking()}
                answer = self._answering.offer(offer, remote_address)
                for one in self.asking():
                    if one.id not in before:
                        self._on_asked(one)
                return answer
            case Reveal() as reveal:
                return self._answering.reveal(reveal)
            case Poll(attempt):
                return self._answering.poll(attempt)
            case Stop(attempt):
                return self._answering.stop(attempt)
            case Code() as code:
                return await self._codes.answer_code(code, remote_address)
            case Confirm() as confirm:
                return await self._codes.answer_confirm(confirm)
            case verdict:
                return await self._answering.verdict(verdict)

    def goes_on(self, body: object) -> bool:
        """True for a body that belongs to a known session: those come often, and cost little."""
        attempt = body.get("attempt") if isinstance(body, dict) else None
        found = self._attempts.find(attempt) if isinstance(attempt, str) else None
        return found is not None and found.role == "answers" and not found.by_code

    def asking(self) -> list[PairingAttempt]:
        """Returns the sessions that wait for this machine's owner, the oldest first."""
        self._attempts.clear()
        return [one for one in self._attempts.live() if one.role == "answers" and not one.by_code]

    def get(self, attempt: str) -> PairingAttempt:
        """The attempt as it stands. Raises ``NoSuchPairingError``."""
        self._attempts.clear()
        return self._attempts.get(attempt)

    async def wait(self, attempt: str, other_than: State, seconds: float) -> PairingAttempt:
        """The attempt as soon as its state is another, or after ``seconds``. Raises ``NoSuchPairingError``."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        while True:
            one = self.get(attempt)
            left = until - loop.time()
            if one.state != other_than or left <= 0:
                return one
            await one.news(min(left, max(0.2, one.expires_at - self._now())))

    async def close(self) -> None:
        """Ends all talking."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _end(self, one: PairingAttempt, event: PairingEvent) -> None:
        self._attempts.end(one, event)
        if one.role == "asks" and not one.by_code:
            self._spawn(self._asking.tell_end(one), one)

    def _spawn(self, work: Coroutine[Any, Any, None], attempt: PairingAttempt) -> asyncio.Task[None]:
        def done(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            if not task.cancelled() and (error := task.exception()) is not None:
                log.error("A pairing failed", exc_info=error)
                self._attempts.end(attempt, "stopped")

        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(done)
        return task


def _host_of(address: str) -> str:
    return address.rpartition(":")[0].strip("[]")
