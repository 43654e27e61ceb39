"""Attempts of somebody on the same network, with keys of their own or with what they overheard."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from envelopes.identity.keys import IdentityKey
from envelopes.identity.pairing_proof import commitment, sign_verdict, transcript

Machine = Any
Network = Any


class ByHand:
    """The asking side of one attempt, step by step, by anybody who has a key."""

    def __init__(self, sender: Machine, to: Machine, *, host: str = "10.0.0.66") -> None:
        self.sender, self.to, self.host = sender, to, host
        self.attempt = str(uuid4())
        self.nonce = os.urandom(32)
        self.introduction = sender.introduction.to_json()
        self.commitment = commitment(self.nonce, sender.key.fingerprint, to.key.fingerprint)
        self.other_nonce = ""

    async def offer(self) -> dict[str, Any]:
        answer = await self._say(
            step="offer", introduction=self.introduction, commitment=self.commitment, attempt=self.attempt
        )
        self.other_nonce = answer.get("nonce", "")
        return answer

    async def reveal(self, nonce: bytes = b"") -> dict[str, Any]:
        return await self._say(step="reveal", attempt=self.attempt, nonce=(nonce or self.nonce).hex())

    async def verdict(
        self, same: bool = True, *, key: IdentityKey | None = None, of: bytes = b""
    ) -> dict[str, Any]:
        signature = sign_verdict(key or self.sender.key, of or self.transcript, same).hex()
        return await self._say(step="verdict", attempt=self.attempt, same=same, signature=signature)

    @property
    def transcript(self) -> bytes:
        return transcript(
            self.sender.introduction, self.to.introduction, self.nonce, bytes.fromhex(self.other_nonce)
        )

    async def _say(self, **body: Any) -> dict[str, Any]:
        return await self.to.hears(body, self.host)  # type: ignore[no-any-return]


@pytest.fixture
def thief(make_machine: Callable[..., Machine]) -> Machine:
    return make_machine("pi")


async def test_a_machine_in_the_middle_shows_itself_by_the_words(
    desk: Machine, pi: Machine, thief: Machine, network: Network
) -> None:
    """The thief answers in pi's name with a key of its own, and asks pi in desk's name: it must speak to each anew."""
    relayed: list[asyncio.Task[Any]] = []
    to_pi = ByHand(thief, pi)

    async def steal(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        if sender is desk and body["step"] == "offer":
            relayed.append(asyncio.create_task(_pair_by_hand(to_pi)))
        return await deliver(thief.address if sender is desk else address, body)

    network.between = steal
    asked = await desk.pairings.ask(thief.introduction, pi.address, "mine")
    here = await desk.until(asked.id, "words")
    there = await pi.asked_by(thief)
    assert here.words != there.words

    # and with an honest introduction in its hands it has no key to speak with
    network.between = None
    stolen = ByHand(thief, pi)
    stolen.introduction = desk.introduction.to_json()
    stolen.commitment = commitment(stolen.nonce, desk.key.fingerprint, pi.key.fingerprint)
    stolen.sender = desk
    await stolen.offer()
    await stolen.reveal()
    attempt = await pi.asked_by(desk)
    await pi.pairings.confirm(attempt.id, True, "mine")
    assert (await stolen.verdict(key=thief.key))["code"] == "bad_pairing"
    assert pi.paired == []


async def test_another_introduction_than_the_one_that_was_asked_stops(
    desk: Machine, pi: Machine, thief: Machine, network: Network
) -> None:
    network.between = lambda sender, address, body, deliver: deliver(thief.address, body)
    asked = await desk.ask(pi)
    assert "something else of itself" in (await desk.until(asked.id, "stopped")).trouble
    assert desk.paired == []


async def test_an_introduction_that_nobody_signed_is_refused(
    pi: Machine, thief: Machine, desk: Machine
) -> None:
    mixed = ByHand(thief, pi)
    mixed.introduction = desk.introduction.to_json() | {
        "certificate": thief.introduction.to_json()["certificate"]
    }
    assert (await mixed.offer())["code"] == "bad_introduction"
    assert pi.pairings.asking() == []


async def test_the_same_nonce_again_still_gets_fresh_words(desk: Machine, pi: Machine) -> None:
    one, again = ByHand(desk, pi), ByHand(desk, pi, host="10.0.0.67")
    again.nonce, again.commitment = one.nonce, one.commitment
    await one.offer()
    await again.offer()
    await one.reveal()
    await again.reveal()
    assert one.other_nonce != again.other_nonce
    words = [attempt.words for attempt in pi.pairings.asking()]
    assert len(set(words)) == 2


async def test_a_repeated_offer_gets_the_same_nonce_a_changed_one_none(
    desk: Machine, pi: Machine, thief: Machine
) -> None:
    one = ByHand(desk, pi)
    assert await one.offer() == await one.offer()
    one.commitment = commitment(os.urandom(32), desk.key.fingerprint, pi.key.fingerprint)
    assert (await one.offer())["code"] == "bad_pairing"
    other = ByHand(thief, pi)
    other.attempt, other.commitment = one.attempt, pi.pairings.get(one.attempt).commitment
    assert (await other.offer())["code"] == "bad_pairing"
    assert len(pi.pairings.asking()) == 1


async def test_a_nonce_that_was_not_promised_ends_the_attempt(desk: Machine, pi: Machine) -> None:
    one = ByHand(desk, pi)
    await one.offer()
    assert (await one.reveal(os.urandom(32)))["code"] == "pairing_stopped"
    assert (await one.reveal())["code"] == "pairing_stopped"
    assert pi.pairings.asking() == []
    assert "promised" in pi.pairings.get(one.attempt).trouble


async def test_a_second_reveal_repeats_the_answer_or_ends_the_attempt(desk: Machine, pi: Machine) -> None:
    one = ByHand(desk, pi)
    await one.offer()
    assert await one.reveal() == await one.reveal() == {"state": "words"}
    words = pi.pairings.get(one.attempt).words
    assert (await one.reveal(os.urandom(32)))["code"] == "pairing_stopped"
    ended = pi.pairings.get(one.attempt)
    assert (ended.state, ended.words) == ("stopped", words)


async def test_a_verdict_before_there_are_words_is_out_of_turn(desk: Machine, pi: Machine) -> None:
    one = ByHand(desk, pi)
    await one.offer()
    assert (await one.verdict())["code"] == "bad_pairing"
    assert pi.pairings.get(one.attempt).state == "asking"


async def test_verdict_counts_for_its_own_session_only(desk: Machine, pi: Machine, thief: Machine) -> None:
    earlier, now = ByHand(desk, pi), ByHand(desk, pi)
    await earlier.offer()
    await earlier.reveal()
    await now.offer()
    await now.reveal()
    await pi.pairings.confirm(now.attempt, True, "mine")
    before = pi.pairings.get(now.attempt).standing
    for refused in (
        await now.verdict(of=earlier.transcript),
        await now.verdict(key=thief.key),
        await now.verdict(key=pi.key),
        await now._say(
            step="verdict",
            attempt=now.attempt,
            same=True,
            signature=sign_verdict(desk.key, now.transcript, False).hex(),
        ),
    ):
        assert refused["code"] == "bad_pairing"
    assert pi.pairings.get(now.attempt).standing == before
    assert pi.paired == []
    answers = [await now.verdict() for _ in range(3)]
    assert answers[0] == answers[1] == answers[2]
    assert answers[0]["state"] == "paired"
    assert len(pi.paired) == 1


async def test_an_answer_that_the_other_did_not_sign_ends_the_attempt(
    desk: Machine, pi: Machine, thief: Machine, network: Network
) -> None:
    async def forge(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        answer = await deliver(address, body)
        if body["step"] in ("verdict", "poll"):
            of = desk.pairings.get(body["attempt"]).transcript
            yes = {"same": True, "signature": sign_verdict(thief.key, of, True).hex()}
            return {"state": "paired", "verdict": yes}
        return answer

    network.between = forge
    asked = await desk.ask(pi)
    assert "did not sign" in (await desk.until(asked.id, "stopped")).trouble
    assert desk.paired == []


async def test_paired_is_nothing_without_a_signed_yes(desk: Machine, pi: Machine, network: Network) -> None:
    async def claim(sender: Machine, address: str, body: dict[str, Any], deliver: Any) -> Any:
        answer = await deliver(address, body)
        return {"state": "paired"} if body["step"] in ("verdict", "poll") else answer

    network.between = claim
    asked = await desk.ask(pi)
    await desk.until(asked.id, "words")
    await desk.pairings.confirm(asked.id, True, "mine")
    await asyncio.sleep(0.2)
    assert desk.pairings.get(asked.id).state == "waiting"
    assert desk.paired == []


async def test_an_expired_attempt_takes_nothing_any_more(
    desk: Machine, pi: Machine, network: Network
) -> None:
    one = ByHand(desk, pi)
    await one.offer()
    await one.reveal()
    await pi.pairings.confirm(one.attempt, True, "mine")
    network.clock.now += 120
    assert (await one.verdict())["state"] == "expired"
    assert (await one.offer())["code"] == "pairing_stopped"
    assert pi.paired == []


async def test_offer_flood_leaves_eight_and_the_wanted_one(
    desk: Machine, pi: Machine, make_machine: Callable[..., Machine]
) -> None:
    crowd = [make_machine(f"bot{number}") for number in range(10)]
    answers = [await ByHand(one, pi, host=f"10.9.0.{number}").offer() for number, one in enumerate(crowd)]
    assert [answer.get("code") for answer in answers] == [None] * 8 + ["pairing_busy"] * 2
    assert len(pi.pairings.asking()) == 8
    for _ in range(30):  # each one keeps its own place, however often it asks
        await ByHand(crowd[0], pi, host="10.9.0.0").offer()
    assert sorted(attempt.name for attempt in pi.pairings.asking()) == [f"bot{number}" for number in range(8)]

    asked = await desk.ask(pi)
    also = await pi.ask(desk, "mine")
    here, there = await desk.until(asked.id, "words"), await pi.until(also.id, "words")
    assert here.words == there.words


async def test_an_answer_of_any_shape_only_ends_the_attempt(
    desk: Machine, pi: Machine, network: Network
) -> None:
    shapes: list[Any] = [
        [],
        None,
        "x",
        7,
        {},
        {"error": 1},
        {"yield": 3},
        {"nonce": "00", "introduction": {}},
    ]
    shapes += [{"error": "\x1b[31mall is well", "code": ["x"]}, {"nonce": "0" * 64, "introduction": {"a": 1}}]
    for shape in shapes:

        async def odd(sender: Machine, address: str, body: Any, deliver: Any, shape: Any = shape) -> Any:
            return shape

        network.between = odd
        asked = await desk.ask(pi)
        ended = await desk.until(asked.id, "stopped")
        assert ended.trouble
        assert "all is well" not in ended.trouble


async def _pair_by_hand(one: ByHand) -> None:
    await one.offer()
    await one.reveal()
