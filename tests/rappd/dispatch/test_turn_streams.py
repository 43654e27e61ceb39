"""Finished turns: how long, and how much of them, a client that comes back still finds."""

from __future__ import annotations

import asyncio

import pytest

from rappd.dispatch import turn_stream
from rappd.dispatch.turn_stream import TurnStream, TurnStreams


async def finished(turns: TurnStreams, turn_id: str, text: str = "", *, settled: bool = True) -> None:
    """A turn that said ``text``, and is over."""
    live = TurnStream()
    live.settled = settled

    async def work() -> None:
        live.append({"type": "delta", "text": text})

    turns.start("ada", turn_id, live, work())
    assert live.task is not None
    await live.task
    await asyncio.sleep(0)  # its end is told by a callback


async def test_turn_whose_end_is_not_recorded_is_asked_anew() -> None:
    turns = TurnStreams()
    await finished(turns, "recorded")
    await finished(turns, "unrecorded", settled=False)
    assert turns.get("ada", "recorded") is not None
    assert turns.get("ada", "unrecorded") is None


async def test_end_of_a_turn_that_was_asked_anew_leaves_the_new_one() -> None:
    turns, first, second, go = TurnStreams(), TurnStream(), TurnStream(), asyncio.Event()
    first.settled = False

    async def waits() -> None:
        await go.wait()

    turns.start("ada", "same", first, waits())
    turns.start("ada", "same", second, asyncio.sleep(60))
    go.set()
    while first.finished_at is None:
        await asyncio.sleep(0)
    assert turns.get("ada", "same") is second
    await turns.close()


async def test_finished_turns_take_so_much_memory_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_stream, "KEEP_OCTETS", 1000)
    turns = TurnStreams()
    for turn_id in ("first", "second", "third"):
        await finished(turns, turn_id, "x" * 400)
    assert [turn_id for turn_id in ("first", "second", "third") if turns.get("ada", turn_id)] == [
        "second",
        "third",
    ]
