"""Any JSON gets a refusal in the one shape, and nothing of anybody else's moves."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envelopes.errors import ReportableError
from envelopes.identity.pairing_proof import CodeExchange, commitment

Machine = Any

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=80),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=8,
)
HEX = st.sampled_from([64, 66, 128]).flatmap(
    lambda size: st.binary(min_size=size // 2, max_size=size // 2).map(bytes.hex)
)
STEPS = st.sampled_from(["offer", "reveal", "verdict", "poll", "stop", "code", "confirm", "", "poll\n"])
KEYS = ["attempt", "introduction", "commitment", "nonce", "same", "signature", "message", "proof"]


def bodies(known: list[Any]) -> st.SearchStrategy[Any]:
    """Anything, and what looks much like a step; ``known`` are values that belong to somebody."""
    value = JSON | HEX | st.uuids(version=4).map(str) | st.booleans() | st.sampled_from(known)
    like_a_step = st.builds(
        lambda step, rest: {"step": step, **rest}, STEPS, st.dictionaries(st.sampled_from(KEYS), value)
    )
    return JSON | like_a_step


async def test_any_json_is_refused_or_answered_and_moves_nobody_elses(
    make_machine: Callable[..., Machine], desk: Machine, pi: Machine
) -> None:
    shed, stranger = make_machine("shed"), make_machine("stranger")
    asked = await desk.ask(pi)
    there = await pi.asked_by(desk)
    await pi.pairings.confirm(there.id, True, "mine")
    own = await pi.ask(shed)
    await pi.until(own.id, "words")
    shown = await pi.pairings.offer_code()
    others = [there.id, own.id, shown.id]
    # what a stranger can know: introductions are public, the ids of attempts between others are not
    known = [desk.introduction.to_json(), stranger.introduction.to_json(), pi.introduction.to_json()]
    loop = asyncio.get_running_loop()

    def standing() -> list[Any]:
        return [
            (one.state, one.words, one.code, one.verdict, one.whose) for one in map(pi.pairings.get, others)
        ]

    before = standing()

    async def try_one(body: Any) -> None:
        pi.pairings.goes_on(body)
        try:
            assert isinstance(await pi.pairings.answer(body, "10.0.0.99"), dict)
        except ReportableError as refused:
            assert 400 <= refused.status < 500
        assert standing() == before

    @settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
    @given(bodies(known))
    def any_body(body: Any) -> None:
        asyncio.run_coroutine_threadsafe(try_one(body), loop).result(30)

    await asyncio.to_thread(any_body)
    nonce = os.urandom(32)
    valid = [
        {
            "step": "offer",
            "attempt": str(uuid4()),
            "introduction": stranger.introduction.to_json(),
            "commitment": commitment(nonce, stranger.key.fingerprint, pi.key.fingerprint),
        },
        {
            "step": "code",
            "attempt": str(uuid4()),
            "introduction": stranger.introduction.to_json(),
            "message": CodeExchange("x").message.hex(),
        },
    ]

    @settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        st.sampled_from(valid),
        st.sampled_from(["attempt", "introduction", "commitment", "message"]),
        JSON | HEX,
    )
    def nearly_right(body: dict[str, Any], key: str, value: Any) -> None:
        asyncio.run_coroutine_threadsafe(try_one(body | {key: value}), loop).result(30)

    await asyncio.to_thread(nearly_right)
    await desk.pairings.confirm(asked.id, True)
    assert (await pi.until(there.id, "paired")).state == "paired"


async def test_session_takes_any_body_without_harm_to_others(
    desk: Machine, pi: Machine, make_machine: Callable[..., Machine]
) -> None:
    """The one that asks may break its own attempt, no more."""
    shed = make_machine("shed")
    mine, other = await shed.ask(pi), await desk.ask(pi)
    await pi.asked_by(shed)
    there = await pi.asked_by(desk)
    await pi.pairings.confirm(there.id, True, "mine")
    loop = asyncio.get_running_loop()

    async def try_one(body: dict[str, Any]) -> None:
        answer = await pi.hears(body | {"attempt": mine.id}, "10.0.0.99")
        assert answer.get("error") or answer.get("state") or answer.get("nonce")
        assert pi.pairings.get(there.id).state == "waiting"

    @settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
    @given(bodies([mine.id]).filter(lambda body: isinstance(body, dict)))
    def any_body(body: dict[str, Any]) -> None:
        asyncio.run_coroutine_threadsafe(try_one(body), loop).result(30)

    await asyncio.to_thread(any_body)
    assert pi.paired == []
    await desk.pairings.confirm(other.id, True)
    await desk.until(other.id, "paired")
    assert [fingerprint for fingerprint, _, _ in pi.paired] == [desk.key.fingerprint]
