"""Callers who wait for a DONE that comes after an ACK."""

from __future__ import annotations

import asyncio

import pytest

from envelopes.envelope import ACK, DONE, ERROR, Envelope, new_id
from neighborhoods.delivery.pending_replies import PendingReplies
from neighborhoods.errors import PeerOfflineError

KITCHEN, GARAGE = "b" * 64, "c" * 64


def reply(id: str, verb: str = DONE) -> Envelope:
    return Envelope(id, "brainstem", "me", verb, {"result": 1})


async def test_an_answer_reaches_everybody_who_waits_for_it() -> None:
    calls, id = PendingReplies(), new_id()
    with calls.expected(KITCHEN, id) as one, calls.expected(KITCHEN, id) as two:
        waiting = asyncio.gather(one.within(30), two.within(30))
        await asyncio.sleep(0)
        assert calls.answered(KITCHEN, reply(id))
        assert await waiting == [reply(id)] * 2
        assert calls.answered(KITCHEN, reply(id, ERROR)), "a second answer is not an error"
        assert await one.within(0) == reply(id)
    assert len(calls) == 0
    assert not calls.answered(KITCHEN, reply(id))


async def test_an_answer_may_be_faster_than_the_ack() -> None:
    calls, id = PendingReplies(), new_id()
    with calls.expected(KITCHEN, id) as place:
        calls.answered(KITCHEN, reply(id.upper()))
        found = await place.within(0)
        assert found is not None


async def test_only_the_asked_peer_answers_at_the_end() -> None:
    calls, id = PendingReplies(), new_id()
    with calls.expected(KITCHEN, id) as place:
        assert not calls.answered(GARAGE, reply(id))
        assert not calls.answered(KITCHEN, reply(new_id()))
        assert not calls.answered(KITCHEN, reply(id, ACK))
        assert await place.within(0.01) is None
        calls.answered(KITCHEN, reply(id, ERROR))
        assert await place.within(30) == reply(id, ERROR)


async def test_a_wait_that_has_no_end_is_ended() -> None:
    calls, id = PendingReplies(), new_id()
    with calls.expected(KITCHEN, id) as place:
        assert calls.ended(KITCHEN, id, PeerOfflineError("It ran out of time."))
        with pytest.raises(PeerOfflineError, match="ran out of time"):
            await place.within(30)
    assert not calls.ended(KITCHEN, id, PeerOfflineError("gone"))


async def test_who_leaves_is_forgotten() -> None:
    calls, id = PendingReplies(), new_id()

    async def wait() -> None:
        with calls.expected(KITCHEN, id) as place:
            await place.within(60)

    leaving, staying = asyncio.ensure_future(wait()), asyncio.ensure_future(wait())
    await asyncio.sleep(0)
    assert len(calls) == 2
    leaving.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaving
    assert len(calls) == 1
    calls.answered(KITCHEN, reply(id))
    await staying
    assert len(calls) == 0
