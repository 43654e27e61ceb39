"""The side that is asked: keeps what strangers offer, a few at a time, until both owners have said yes."""

from __future__ import annotations

import os
from hashlib import sha256
from hmac import compare_digest
from typing import Any, Final

from envelopes.identity.node_card import NodeCard
from envelopes.identity.pairing_proof import NONCE_BYTES, keeps, pairing_words, transcript, verdict_holds
from neighborhoods.errors import BadStepError, NeighborhoodError, NoSuchPairingError, PairingStoppedError
from neighborhoods.pairing.local_party import LocalParty
from neighborhoods.pairing.messages import (
    Offer,
    OfferAnswer,
    OwnerVerdict,
    Reveal,
    SimultaneousOpenReply,
    StatusReply,
    as_json,
)
from neighborhoods.pairing.pairing_states import PairingAttempt

MOST_PENDING: Final = 8

BROKEN_PROMISE = (
    "The other machine did not keep to what it promised; nothing was paired.",
    "Retry once, then change network.",
)


class Responder:
    """Answers each step of somebody else's attempt. Repeats get the same answer."""

    def __init__(self, here: LocalParty) -> None:
        self._here = here

    def offer(self, step: Offer, host: str) -> dict[str, Any]:
        """This machine and its nonce; or that an attempt of its own is kept."""
        here = self._here
        peer = here.meet(NodeCard.from_json(step.introduction))
        before = here.attempts.find(step.attempt)
        if before is not None:
            return self._repeated(before, peer, step)
        own = self._own_ask(peer.fingerprint)
        if own and not own.yielded and (own.words or here.key.fingerprint < peer.fingerprint):
            return as_json(SimultaneousOpenReply(sha256(own.id.encode()).hexdigest()))
        pending = [one for one in here.attempts.live() if one.role == "answers" and not one.by_code]
        for one in pending:
            if (one.host, one.fingerprint) == (host, peer.fingerprint):  # it began anew
                here.attempts.end(one, "stopped")
        if own is None and sum(one.live for one in pending) >= MOST_PENDING:
            raise NeighborhoodError(
                "Too many machines are asking.", do="Try again in two minutes.", code="pairing_busy"
            )
        attempt = here.attempts.add(
            PairingAttempt(
                id=step.attempt,
                role="answers",
                mine=here.introduction(),
                expires_at=here.now() + here.within,
                peer=peer,
                address=address_of(host, peer.port),
                host=host,
                nonce=os.urandom(NONCE_BYTES),
                commitment=step.commitment,
            )
        )
        if own is not None:
            here.attempts.join(own, attempt)
        return self._offered(attempt)

    def reveal(self, step: Reveal) -> dict[str, Any]:
        """Shows the words, once the nonce is the promised one. Another nonce ends the attempt."""
        attempt = self._answered(step.attempt)
        assert attempt.peer is not None
        if attempt.transcript and compare_digest(step.nonce, attempt.other_nonce):
            return as_json(attempt.standing)
        if not attempt.live:
            raise self._over(attempt)
        nonce = bytes.fromhex(step.nonce)
        asks = attempt.peer.fingerprint
        if not keeps(attempt.commitment, nonce, asks, self._here.key.fingerprint):
            self._here.attempts.end(attempt, "stopped", BROKEN_PROMISE)
            raise self._over(attempt)
        attempt.other_nonce = step.nonce
        attempt.transcript = transcript(attempt.peer, attempt.mine, nonce, attempt.nonce)
        attempt.words = pairing_words(attempt.transcript)
        attempt.happen("words")
        return as_json(attempt.standing)

    async def verdict(self, step: OwnerVerdict) -> dict[str, Any]:
        """Takes the other owner's verdict, when its machine signed it for these very words."""
        attempt = self._answered(step.attempt)
        async with attempt.lock:
            if not attempt.live:
                return as_json(attempt.standing)
            if not attempt.transcript:
                raise BadStepError("There are no words yet.", do="Reveal first.")
            assert attempt.peer is not None
            signature = bytes.fromhex(step.signature)
            if not verdict_holds(attempt.peer.public_key, attempt.transcript, step.same, signature):
                raise BadStepError(
                    "That verdict is not signed for this pairing.", do="Start anew on both machines."
                )
            if not step.same:
                self._here.attempts.end(attempt, "no")
            else:
                attempt.other_yes = True
                await self.settle_if_both(attempt)
            return as_json(attempt.standing)

    def poll(self, attempt_id: str) -> dict[str, Any]:
        """Returns the state of a session."""
        return as_json(self._answered(attempt_id).standing)

    def stop(self, attempt_id: str) -> dict[str, Any]:
        """The other owner stopped."""
        attempt = self._answered(attempt_id)
        self._here.attempts.end(attempt, "stopped")
        return as_json(StatusReply(attempt.state))

    async def settle_if_both(self, attempt: PairingAttempt) -> None:
        """Paired, when both owners said yes. The caller holds the attempt's lock."""
        if attempt.live and attempt.yes and attempt.other_yes:
            await self._here.settle(attempt)

    def _own_ask(self, fingerprint: str) -> PairingAttempt | None:
        for one in self._here.attempts.live():
            if one.role == "asks" and not one.by_code and one.fingerprint == fingerprint:
                return one
        return None

    def _answered(self, attempt_id: str) -> PairingAttempt:
        found = self._here.attempts.find(attempt_id)
        if found is None or found.role != "answers" or found.by_code:
            raise NoSuchPairingError("No such pairing is under way.", do="Start anew on both machines.")
        return found

    def _repeated(self, attempt: PairingAttempt, peer: NodeCard, step: Offer) -> dict[str, Any]:
        if attempt.role != "answers" or attempt.by_code or attempt.peer != peer:
            raise BadStepError("That attempt is somebody else's.", do="Start anew on both machines.")
        if not attempt.live:
            raise self._over(attempt)
        if attempt.commitment != step.commitment:
            raise BadStepError("That attempt has another promise.", do="Start anew on both machines.")
        return self._offered(attempt)

    def _offered(self, attempt: PairingAttempt) -> dict[str, Any]:
        return as_json(OfferAnswer(attempt.mine.to_json(), attempt.nonce.hex()))

    def _over(self, attempt: PairingAttempt) -> PairingStoppedError:
        return attempt.problem() or PairingStoppedError(
            "That pairing is over.", do="Start anew on both machines."
        )


def address_of(host: str, port: int) -> str:
    """``host:port``, an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
