"""Retries: of which errors, when, and with what."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.codecs import emergence
from neighborhoods.delivery.retry import RetryPolicy, jittered, retried
from neighborhoods.errors import (
    DeclinedError,
    KeyChangedError,
    NeighborhoodError,
    NotPairedError,
    PeerOfflineError,
    RetriableError,
)

AWAY = PeerOfflineError("away", maybe_sent=False)
SILENT = PeerOfflineError("silent", maybe_sent=True)


class Tries:
    """An attempt that fails so many times, and a pause that is noted instead of waited."""

    def __init__(self, error: NeighborhoodError, times: int = 99) -> None:
        self.error = error
        self.times = times
        self.made = 0
        self.pauses: list[float] = []

    async def attempt(self, left: float) -> str:
        self.made += 1
        if self.made <= self.times:
            raise self.error
        return "there"

    async def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


@pytest.mark.parametrize("error", [AWAY, SILENT])
@pytest.mark.parametrize(("chance", "pauses"), [(0.0, [0.4, 0.8, 1.6]), (0.5, [0.5, 1.0, 2.0])])
async def test_three_more_tries(error: PeerOfflineError, chance: float, pauses: list[float]) -> None:
    tries = Tries(error)
    with pytest.raises(PeerOfflineError) as raised:
        await retried(tries.attempt, within=30, random=lambda: chance, pause=tries.pause)
    assert raised.value is error
    assert tries.made == 4
    assert tries.pauses == pytest.approx(pauses)


@pytest.mark.parametrize("status", [408, 425, 429, 502, 503, 504])
async def test_statuses_that_pass(status: int) -> None:
    tries = Tries(RetriableError("busy", answered=status), times=2)
    assert await retried(tries.attempt, within=100, pause=tries.pause) == "there"
    assert tries.made == 3


@pytest.mark.parametrize(
    "error",
    [
        KeyChangedError("k"),
        NotPairedError("n"),
        DeclinedError("d", answered=403),
        RetriableError("odd", answered=500),
    ],
)
async def test_a_no_is_not_asked_again(error: NeighborhoodError) -> None:
    tries = Tries(error)
    with pytest.raises(type(error)):
        await retried(tries.attempt, within=30, pause=tries.pause)
    assert (tries.made, tries.pauses) == (1, [])


@pytest.mark.parametrize(
    ("error", "made"),
    [
        (SILENT, 1),
        (RetriableError("broken", answered=502), 1),
        (AWAY, 4),
        (RetriableError("later", answered=429), 4),
    ],
)
async def test_unrecognised_repeats_send_only_what_never_arrived(error: NeighborhoodError, made: int) -> None:
    tries = Tries(error)
    with pytest.raises(type(error)):
        await retried(tries.attempt, within=30, repeatable=False, pause=tries.pause)
    assert tries.made == made


async def test_retry_after_lengthens_pause_within_deadline() -> None:
    tries = Tries(RetriableError("busy", answered=429, retry_after=7.0), times=1)
    await retried(tries.attempt, within=100, pause=tries.pause)
    assert tries.pauses == [7.0]
    tries = Tries(RetriableError("busy", answered=429, retry_after=0.001), times=1)
    await retried(tries.attempt, within=100, pause=tries.pause, random=lambda: 0.5)
    assert tries.pauses == [0.5]
    tries = Tries(RetriableError("busy", answered=429, retry_after=31.0))
    with pytest.raises(RetriableError):
        await retried(tries.attempt, within=30, pause=tries.pause)
    assert (tries.made, tries.pauses) == (1, [])


@given(st.floats(0.001, 1000), st.floats(0, 1, exclude_max=True))
def test_the_spread_is_a_fifth(seconds: float, chance: float) -> None:
    assert 0.8 * seconds <= jittered(seconds, lambda: chance) * 1.000001
    assert jittered(seconds, lambda: chance) <= 1.2 * seconds * 1.000001


def test_pause_of_a_queue_doubles_up_to_five_minutes() -> None:
    tries = (1, 2, 3, 4, 9, 10, 1_000_000)
    pauses = [RetryPolicy().pause(one, lambda: 0.5) for one in tries]
    assert pauses == pytest.approx([1, 2, 4, 8, 256, 300, 300])


async def test_every_try_carries_the_same_bytes_and_is_performed_once(home: Any, far: Any, kit: Any) -> None:
    asked = kit.question()
    encoded = emergence.encode(asked)
    far.mood = "cut after"

    async def pause(seconds: float) -> None:
        far.mood = {"cut after": "cut before", "cut before": 503}.get(far.mood, "")

    reply = await retried(lambda left: home.way.send(far.peer, encoded, wait=left), within=100, pause=pause)
    assert reply.verb == "DONE"
    assert home.way.sent == [encoded] * 4
    assert far.accepted == [asked.id]


async def test_a_call_goes_past_a_queue_that_is_under_way(home: Any, far: Any, kit: Any) -> None:
    far.hold = asyncio.Event()
    for _ in range(150):
        await home.put(kit.question())
    await far.taken.wait()
    asked = emergence.encode(kit.question())
    reply = await retried(lambda left: home.way.send(far.peer, asked, wait=left), within=100)
    assert reply.verb == "DONE"
    assert home.told == []
    far.hold.set()
    await kit.until(lambda: len(home.told) == 150)
