"""A question to many: everybody's HELLO, the first DONE, all within a deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from envelopes.envelope import ACK, DONE, ERROR, HELLO, Envelope, new_id
from neighborhoods.delivery.broadcast import first_done, gather_all, hello_all
from neighborhoods.errors import PeerOfflineError
from neighborhoods.peer import Peer


class Street:
    """Peers of which each behaves by its name; ``go`` lets those answer that wait for it."""

    def __init__(self, kit: Any, *behaviours: str) -> None:
        self.peers = [kit.peer_called(name, f"{number:x}") for number, name in enumerate(behaviours)]
        self.go = asyncio.Event()
        self.asked: list[str] = []
        self.interrupted: list[str] = []
        self.cancelled: list[str] = []

    async def call(self, peer: Peer) -> Envelope:
        self.asked.append(peer.name)
        reply: Callable[[str, dict[str, Any]], Envelope] = lambda verb, data: Envelope(  # noqa: E731
            new_id(), peer.name, "me", verb, data
        )
        if peer.name == "away":
            raise PeerOfflineError("It is away.")
        if peer.name == "angry":
            return reply(ERROR, {"code": 500, "msg": "No."})
        if peer.name == "vague":
            return reply(ACK, {})
        if peer.name == "hello":
            return reply(HELLO, {})
        try:
            if peer.name == "slow":
                await self.go.wait()
            elif peer.name == "never":
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.interrupted.append(peer.name)
            raise
        return reply(DONE, {"result": peer.name})

    async def cancel(self, peer: Peer) -> None:
        self.cancelled.append(peer.name)
        if len(self.cancelled) == 1:
            raise PeerOfflineError("It went.")


async def test_hello_tells_who_is_there(kit: Any) -> None:
    street = Street(kit, "hello", "away", "angry", "never")
    heard = await hello_all(street.peers, street.call, within=0.2)
    assert [(one.peer.name, one.outcome) for one in heard] == [
        ("hello", "answered"),
        ("away", "failed"),
        ("angry", "refused"),
        ("never", "late"),
    ]
    assert heard[1].trouble == "It is away."
    assert await hello_all([], street.call) == []


async def test_the_first_done_wins_and_the_others_are_cancelled(kit: Any) -> None:
    street = Street(kit, "never", "away", "angry", "vague", "slow", "never")
    asyncio.get_running_loop().call_later(0.05, street.go.set)
    result = await first_done(street.peers, street.call, street.cancel, 20)
    assert result.winner is not None
    assert result.winner.peer.name == "slow"
    assert result.winner.reply is not None
    assert result.winner.reply.data == {"result": "slow"}
    outcomes = [one.outcome for one in result.heard]
    assert outcomes == ["not_needed", "failed", "refused", "refused", "answered", "not_needed"]
    assert street.interrupted == street.cancelled == ["never", "never"]


async def test_nobody_is_done(kit: Any) -> None:
    street = Street(kit, "away", "angry")
    result = await first_done(street.peers, street.call, street.cancel, 20)
    assert result.winner is None
    assert [one.trouble for one in result.heard] == ["It is away.", "No."]
    assert street.cancelled == []
    assert (await first_done([], street.call, street.cancel, 20)).winner is None


async def test_nobody_is_done_in_time(kit: Any) -> None:
    street = Street(kit, "never", "away")
    result = await first_done(street.peers, street.call, street.cancel, 0.1)
    assert result.winner is None
    assert [one.outcome for one in result.heard] == ["late", "failed"]
    assert street.cancelled == ["never"]


async def test_two_at_the_same_moment_make_one_winner(kit: Any) -> None:
    street = Street(kit, "slow", "slow", "slow")
    asyncio.get_running_loop().call_later(0.02, street.go.set)
    result = await first_done(street.peers, street.call, street.cancel, 20)
    assert result.winner is not None
    done = [one.peer for one in result.heard if one.outcome == "answered"]
    assert result.winner.peer in done
    assert len(done) + len(street.cancelled) == 3


@pytest.mark.parametrize("gathering", [False, True])
async def test_who_asked_goes_away(kit: Any, gathering: bool) -> None:
    street = Street(kit, "never", "never")
    racing = asyncio.ensure_future(
        gather_all(street.peers, street.call, 60, cancel=street.cancel)
        if gathering
        else first_done(street.peers, street.call, street.cancel, 60)
    )
    await kit.until(lambda: len(street.asked) == 2)
    racing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await racing
    assert street.interrupted == street.cancelled == ["never", "never"]


async def test_gather_keeps_what_came_within_the_deadline(kit: Any) -> None:
    street = Street(kit, "slow", "never", "quick", "angry", "away")
    asyncio.get_running_loop().call_later(0.02, street.go.set)
    heard = await gather_all(street.peers, street.call, 0.4, cancel=street.cancel)
    assert [one.outcome for one in heard] == ["answered", "late", "answered", "refused", "failed"]
    assert [one.reply.data["result"] for one in heard if one.reply and one.outcome == "answered"] == [
        "slow",
        "quick",
    ]
    assert street.cancelled == ["never"]


async def test_gather_ends_as_soon_as_everybody_answered(kit: Any) -> None:
    street = Street(kit, "quick", "quick", "away")
    async with asyncio.timeout(100):
        heard = await gather_all(street.peers, street.call, 3600)
    assert [one.outcome for one in heard] == ["answered", "answered", "failed"]
