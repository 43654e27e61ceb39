"""Pairing by a code, for a machine without a screen: one shows it, the other types it; wrong tries are few."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import Any, Final
from uuid import uuid4

from envelopes.errors import ReportableError
from envelopes.identity.node_card import NodeCard
from envelopes.identity.pairing_proof import (
    CodeExchange,
    code_transcript,
    confirmation,
    confirms,
    new_code,
    sign_code,
)
from neighborhoods.discovery.address_text import is_loopback, network_of
from neighborhoods.errors import BadStepError, NeighborhoodError, NoSuchPairingError, PairingStoppedError
from neighborhoods.pairing.local_party import WRONG_CODE, LocalParty
from neighborhoods.pairing.messages import (
    Code,
    CodeAnswer,
    Confirm,
    ConfirmAnswer,
    as_json,
    read_answer,
)
from neighborhoods.pairing.pairing_states import Ending, PairingAttempt, stopped
from neighborhoods.pairing.responder import MOST_PENDING, address_of
from neighborhoods.peer import Whose

CODE_SECONDS: Final = 600.0
WRONG_OF_ONE_SOURCE: Final = 3
WRONG_IN_ALL: Final = 64
"""Wrong tries that a code survives: of 34 bits, all of them together guess one in 2^28."""

BURNT: Final[Ending] = (
    "Other codes were tried too often; nothing was paired.",
    "Make a new one: rappd peers pair --code",
)


@dataclass(slots=True, eq=False)
class _CodeAttempt:
    """A stranger's try: nothing that tells right from wrong has left this machine until its proof is in."""

    introduction: NodeCard
    host: str
    message: str
    mine: NodeCard
    answer: dict[str, Any]
    transcript: bytes
    until: float
    key: bytes = field(repr=False)
    proof: str = ""
    confirmed: dict[str, Any] | None = field(default=None, repr=False)


class CodePairing:
    """Both sides of pairing by code. One code is shown at a time."""

    def __init__(self, here: LocalParty) -> None:
        self._here = here
        self._shown: PairingAttempt | None = None
        self._tries: dict[str, _CodeAttempt] = {}
        self._wrong: Counter[str] = Counter()  # tries of the shown code, by source
        self._lock = asyncio.Lock()  # one piece of arithmetic at a time

    def offer(self, whose: Whose) -> PairingAttempt:
        """A fresh code, good for ten minutes and one pairing; the one before is void."""
        here = self._here
        if self._shown is not None:
            here.attempts.end(self._shown, "stopped")
        self._forget()
        self._wrong.clear()
        self._shown = here.attempts.add(
            PairingAttempt(
                id=str(uuid4()),
                role="answers",
                mine=here.introduction(),
                expires_at=here.now() + CODE_SECONDS,
                whose=whose,
                code=new_code(),
                by_code=True,
            )
        )
        return self._shown

    def begin(self, peer: NodeCard, address: str, code: str, whose: Whose) -> PairingAttempt:
        """A new attempt with a code from the other machine, not yet under way."""
        return self._here.attempts.add(
            PairingAttempt(
                id=str(uuid4()),
                role="asks",
                mine=self._here.introduction(),
                expires_at=self._here.now() + self._here.within,
                peer=peer,
                address=address,
                whose=whose,
                code=code,
                by_code=True,
            )
        )

    async def drive(self, attempt: PairingAttempt) -> None:
        """From the first message to the end. Ends the attempt for whatever goes wrong."""
        try:
            await self._use(attempt)
        except ReportableError as problem:
            self._here.attempts.end(attempt, "stopped", (str(problem), problem.do))

    async def answer_code(self, step: Code, host: str) -> dict[str, Any]:
        """This machine's message for a try. Costs the caller a place among a few, not the code."""
        here = self._here
        peer = here.meet(NodeCard.from_json(step.introduction))
        async with self._lock:
            self._forget_late()
            shown = self._live_code()
            self._check_source(host)
            before = self._tries.get(step.attempt)
            if before is not None:
                if before.introduction != peer or before.message != step.message:
                    raise BadStepError("That attempt is somebody else's.", do="Start anew.")
                return before.answer
            if here.attempts.find(step.attempt) is not None:
                raise BadStepError("That attempt is somebody else's.", do="Start anew.")
            for number, one in list(self._tries.items()):
                if (one.host, one.introduction.fingerprint) == (host, peer.fingerprint) and not one.confirmed:
                    del self._tries[number]
            self._make_room(host)
            theirs = bytes.fromhex(step.message)
            message, key = await asyncio.to_thread(_answer_to, shown.code, theirs)
            shown = self._live_code()  # it may have been stopped meanwhile
            answer = as_json(CodeAnswer(shown.mine.to_json(), message.hex()))
            self._tries[step.attempt] = _CodeAttempt(
                introduction=peer,
                host=host,
                message=step.message,
                mine=shown.mine,
                answer=answer,
                transcript=code_transcript(peer, shown.mine, theirs, message),
                until=here.now() + here.within,
                key=key,
            )
            return answer

    async def answer_confirm(self, step: Confirm) -> dict[str, Any]:
        """The same proof from here, once the caller's is right. A wrong one costs its source a try."""
        here = self._here
        async with self._lock:
            self._forget_late()
            one = self._tries.get(step.attempt)
            if one is None:
                raise NoSuchPairingError("No such pairing is under way.", do="Start anew.")
            if one.confirmed is not None:
                if not compare_digest(one.proof, step.proof):
                    raise BadStepError("That attempt has another proof.", do="Start anew.")
                return one.confirmed
            shown = self._live_code()
            self._check_source(one.host)
            right = confirms(
                one.key,
                "asks",
                one.transcript,
                bytes.fromhex(step.proof),
                public=one.introduction.public_key,
                signature=bytes.fromhex(step.signature),
            )
            if not right:
                del self._tries[step.attempt]
                self._wrong[_source(one.host)] += 1
                if self._wrong.total() >= WRONG_IN_ALL:
                    here.attempts.end(shown, "stopped", BURNT)
                    self._forget()
                raise stopped(WRONG_CODE)
            shown.peer, shown.host = one.introduction, one.host
            shown.address = address_of(one.host, one.introduction.port)
            await here.settle(shown)
            if (problem := shown.problem()) is not None:
                raise problem
            one.proof, one.until = step.proof, here.now() + CODE_SECONDS
            one.confirmed = as_json(
                ConfirmAnswer(
                    proof=confirmation(one.key, "answers", one.transcript).hex(),
                    signature=sign_code(here.key, "answers", one.transcript).hex(),
                )
            )
            self._forget()
            return one.confirmed

    async def _use(self, attempt: PairingAttempt) -> None:
        here, peer = self._here, attempt.peer
        assert peer is not None
        exchange = await asyncio.to_thread(CodeExchange, attempt.code)
        begun = as_json(Code(attempt.id, attempt.mine.to_json(), exchange.message.hex()))
        answer = read_answer(await here.say(attempt, begun, patient=False), CodeAnswer)
        if NodeCard.from_json(answer.introduction) != peer:
            raise PairingStoppedError(
                f"{peer.name} says something else of itself than a moment ago; nothing was paired.",
                do="Retry once, then change network.",
            )
        theirs = bytes.fromhex(answer.message)
        key = await asyncio.to_thread(exchange.key, theirs)
        seen = code_transcript(attempt.mine, peer, exchange.message, theirs)
        proof = Confirm(
            attempt.id,
            confirmation(key, "asks", seen).hex(),
            sign_code(here.key, "asks", seen).hex(),
        )
        if not attempt.happen("proof"):  # its time was over while the other machine was asked
            return
        confirmed = read_answer(await here.say(attempt, as_json(proof), patient=True), ConfirmAnswer)
        right = confirms(
            key,
            "answers",
            seen,
            bytes.fromhex(confirmed.proof),
            public=peer.public_key,
            signature=bytes.fromhex(confirmed.signature),
        )
        if not right:
            raise stopped(WRONG_CODE)
        async with attempt.lock:
            if attempt.live:
                await here.settle(attempt)

    def _live_code(self) -> PairingAttempt:
        if self._shown is None or not self._shown.live:
            raise NoSuchPairingError("No code is shown there now.", do="There: rappd peers pair --code")
        return self._shown

    def _check_source(self, host: str) -> None:
        if self._wrong[_source(host)] >= WRONG_OF_ONE_SOURCE:
            raise stopped(WRONG_CODE)

    def _make_room(self, host: str) -> None:
        """A source that has too many tries under way loses its own oldest one. Raises ``pairing_busy``."""
        pending = {number: _source(one.host) for number, one in self._tries.items() if not one.confirmed}
        own = [number for number, source in pending.items() if source == _source(host)]
        if len(own) >= WRONG_OF_ONE_SOURCE:
            del self._tries[own[0]]
        elif len(pending) >= MOST_PENDING:
            raise NeighborhoodError(
                "Too many machines are trying a code.", do="Try again in two minutes.", code="pairing_busy"
            )

    def _forget(self) -> None:
        """Tries that are under way; answered ones stay, for callers whose answer got lost."""
        self._tries = {number: one for number, one in self._tries.items() if one.confirmed}

    def _forget_late(self) -> None:
        now = self._here.now()
        self._tries = {number: one for number, one in self._tries.items() if now < one.until}


def _source(host: str) -> str:
    """Addresses that one machine can have many of count as one: this machine's own, an IPv6 network."""
    return "loopback" if is_loopback(host) else network_of(host)


def _answer_to(code: str, message: bytes) -> tuple[bytes, bytes]:
    exchange = CodeExchange(code)
    return exchange.message, exchange.key(message)
