"""The side that asks: offers, reveals, shows the words, then goes on asking what the other owner said."""

from __future__ import annotations

import logging
import os
from hashlib import sha256
from typing import Any
from uuid import uuid4

from envelopes.errors import ReportableError
from envelopes.identity.node_card import NodeCard
from envelopes.identity.pairing_proof import NONCE_BYTES, commitment, pairing_words, transcript, verdict_holds
from neighborhoods.errors import PairingStoppedError
from neighborhoods.pairing.local_party import LocalParty
from neighborhoods.pairing.messages import (
    Offer,
    OfferAnswer,
    OwnerVerdict,
    Poll,
    Reveal,
    SimultaneousOpenReply,
    StatusReply,
    Stop,
    as_json,
    read_answer,
)
from neighborhoods.pairing.pairing_states import PairingAttempt
from neighborhoods.peer import Whose

log = logging.getLogger("pairing")

WORDS_SECONDS = 120.0
"""From the first question to the last yes, unless told otherwise."""


class Initiator:
    """Drives attempts of this side, each in a task of its own that the caller keeps."""

    def __init__(self, here: LocalParty) -> None:
        self._here = here

    def begin(self, peer: NodeCard, address: str, whose: Whose | None) -> PairingAttempt:
        """A new attempt, not yet under way."""
        here = self._here
        nonce = os.urandom(NONCE_BYTES)
        return here.attempts.add(
            PairingAttempt(
                id=str(uuid4()),
                role="asks",
                mine=here.introduction(),
                expires_at=here.now() + here.within,
                peer=peer,
                address=address,
                whose=whose,
                nonce=nonce,
                commitment=commitment(nonce, here.key.fingerprint, peer.fingerprint),
            )
        )

    async def drive(self, attempt: PairingAttempt) -> None:
        """From the offer to the end. Ends the attempt for whatever goes wrong."""
        try:
            if await self._offer(attempt):
                await self._agree(attempt)
        except ReportableError as problem:
            self._here.attempts.end(attempt, "stopped", (str(problem), problem.do))

    async def tell_end(self, attempt: PairingAttempt) -> None:
        """Lets the other side know that the owner here said no, or stopped; it would find out by itself."""
        verdict = attempt.verdict
        body = as_json(
            OwnerVerdict(attempt.id, verdict.same, verdict.signature) if verdict else Stop(attempt.id)
        )
        try:
            await self._here.say(attempt, body, patient=False)
        except ReportableError as problem:
            log.debug("An end could not be told: %s", problem.code)

    async def _offer(self, attempt: PairingAttempt) -> bool:
        """True when both have the words."""
        assert attempt.peer is not None
        nonce = attempt.nonce
        answer = await self._say(
            attempt, Offer(attempt.id, attempt.mine.to_json(), attempt.commitment), patient=False
        )
        if isinstance(answer, dict) and "yield" in answer:
            self._yield(attempt, read_answer(answer, SimultaneousOpenReply).kept)
            return False
        offered = read_answer(answer, OfferAnswer)
        if NodeCard.from_json(offered.introduction) != attempt.peer:
            raise PairingStoppedError(
                f"{attempt.name} says something else of itself than a moment ago; nothing was paired.",
                do="Retry once, then change network.",
            )
        read_answer(await self._say(attempt, Reveal(attempt.id, nonce.hex()), patient=True), StatusReply)
        if not attempt.live:
            return False
        attempt.transcript = transcript(attempt.mine, attempt.peer, nonce, bytes.fromhex(offered.nonce))
        attempt.words = pairing_words(attempt.transcript)
        for other in self._here.attempts.live():  # asked from elsewhere before: these words are the ones now
            if other is not attempt and not other.by_code and other.fingerprint == attempt.fingerprint:
                self._here.attempts.end(other, "stopped")
        attempt.happen("words")
        return True

    def _yield(self, attempt: PairingAttempt, kept: str) -> None:
        """The other side goes on with an attempt of its own, which is here already or will come."""
        attempt.yielded = True
        for one in self._here.attempts.live():
            same = one.role == "answers" and one.fingerprint == attempt.fingerprint
            if same and sha256(one.id.encode()).hexdigest() == kept:
                self._here.attempts.join(attempt, one)
                return

    async def _agree(self, attempt: PairingAttempt) -> None:
        shown = None
        while attempt.live:
            verdict = attempt.verdict
            if verdict is not None and shown is None:
                answer = await self._say(
                    attempt, OwnerVerdict(attempt.id, verdict.same, verdict.signature), patient=True
                )
                shown = verdict
            else:
                answer = await self._say(attempt, Poll(attempt.id), patient=True)
            async with attempt.lock:
                await self._learn(attempt, read_answer(answer, StatusReply))
            self._here.attempts.clear()
            if attempt.live and (attempt.verdict is None) == (shown is None):
                await attempt.news(self._here.poll)

    async def _learn(self, attempt: PairingAttempt, standing: StatusReply) -> None:
        end = self._here.attempts.end
        verdict, peer = standing.verdict, attempt.peer
        if verdict is not None:
            assert peer is not None
            signature = bytes.fromhex(verdict.signature)
            if not verdict_holds(peer.public_key, attempt.transcript, verdict.same, signature):
                raise PairingStoppedError(
                    f"An answer came that {attempt.name} did not sign; nothing was paired.",
                    do="Retry once, then change network.",
                )
            attempt.other_yes = verdict.same
        if standing.state == "differ" or (verdict is not None and not verdict.same):
            end(attempt, "no")
        elif standing.state in ("stopped", "expired"):
            end(attempt, standing.state)
        elif standing.state == "paired" and attempt.yes and attempt.other_yes and attempt.live:
            await self._here.settle(attempt)

    async def _say(self, attempt: PairingAttempt, step: Any, *, patient: bool) -> Any:
        return await self._here.say(attempt, as_json(step), patient=patient)
