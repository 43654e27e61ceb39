"""When the writer is woken: at once for one, together for many, and never so late that a person would notice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rappd.store import gathering, writer
from rappd.store.gathering import Gathering
from rappd.store.records import ThreadInfo
from rappd.store.store import Store


@pytest.fixture
def rings() -> list[int]:
    return []


@pytest.fixture
def gathered(rings: list[int]) -> Gathering:
    return Gathering(lambda: rings.append(1))


def _flows(gathered: Gathering) -> None:
    for _ in range(gathering.MANY):
        gathered.put(waits=True)
    gathered.answered(gathering.MANY)


async def test_one_who_waits_wakes_the_writer_at_once(gathered: Gathering, rings: list[int]) -> None:
    with gathered.turn(), gathered.turn():
        gathered.put(waits=False)
        assert not rings
        gathered.put(waits=True)
        assert rings == [1]


async def test_where_many_were_answered_together_the_last_of_those_under_way_wakes_it(
    gathered: Gathering, rings: list[int]
) -> None:
    _flows(gathered)
    rings.clear()
    with gathered.turn(), gathered.turn(), gathered.turn():
        gathered.put(waits=True)
        gathered.put(waits=True)
        assert not rings
        gathered.put(waits=True)
        assert rings == [1]
    await asyncio.sleep(gathering.LOOK_SECONDS * gathering.LOOKS * 3)
    assert rings == [1]


async def test_nobody_waits_for_a_turn_that_takes_long(gathered: Gathering, rings: list[int]) -> None:
    _flows(gathered)
    rings.clear()
    with gathered.turn(), gathered.turn():
        gathered.put(waits=True)
        assert not rings
        async with asyncio.timeout(5):
            while not rings:
                await asyncio.sleep(gathering.LOOK_SECONDS)


async def test_nobody_waits_for_ever_while_others_keep_writing(gathered: Gathering, rings: list[int]) -> None:
    _flows(gathered)
    rings.clear()
    with gathered.turn(), gathered.turn():
        gathered.put(waits=True)
        async with asyncio.timeout(5):
            while not rings:
                gathered.put(waits=False)
                await asyncio.sleep(0)


async def test_it_is_forgotten_after_a_while_that_many_came(gathered: Gathering, rings: list[int]) -> None:
    _flows(gathered)
    for _ in range(gathering.MANY):
        gathered.put(waits=True)
        gathered.answered(1)
    rings.clear()
    with gathered.turn(), gathered.turn():
        gathered.put(waits=True)
        assert rings == [1]


async def test_what_a_machine_is_asked_now_is_committed_while_it_works(
    store: Store, say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LINGER_SECONDS", 3600)
    store.queue(say("a" * 8, "asked"), hasten=True)
    async with asyncio.timeout(5):
        while (await store.counts()).events != 1:
            await asyncio.sleep(0.001)


async def test_nothing_is_hastened_while_many_wait(
    store: Store, say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "LINGER_SECONDS", 3600)
    _flows(store.gathering)
    await asyncio.sleep(0.05)  # what that rang for is over
    store.queue(say("a" * 8, "asked"), hasten=True)
    await asyncio.sleep(0.05)
    assert (await store.counts()).events == 0


async def test_a_thread_said_to_be_new_that_is_not_costs_nobody_else(path: Path, say) -> None:
    store = await Store.open(path)
    await store.commit(say("a" * 8, "first"))
    await store.close()
    store = await Store.open(path)
    try:
        store.thread(ThreadInfo("a" * 8, "brainstem", "somebody", "s", "t", 1, fresh=True))
        await store.commit(say("b" * 8, "another"))
        await store.commit(say("a" * 8, "second"))
        assert [event.n for event in await store.thread_events("a" * 8)] == [1, 2]
        assert [event.n for event in await store.thread_events("b" * 8)] == [1]
    finally:
        await store.close()
