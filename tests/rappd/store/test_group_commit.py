"""Group commit: at once under low load, for all active turns together under high load, never late."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rappd.store import writer
from rappd.store.records import ThreadInfo
from rappd.store.store import Store
from rappd.store.writer import GroupCommitPolicy


@pytest.fixture
def wakeups() -> list[int]:
    return []


@pytest.fixture
def policy(wakeups: list[int]) -> GroupCommitPolicy:
    return GroupCommitPolicy(lambda: wakeups.append(1))


def _flows(policy: GroupCommitPolicy) -> None:
    for _ in range(writer.MANY):
        policy.add_waiter(waits=True)
    policy.resolved(writer.MANY)


async def test_group_commit_wakes_writer_at_once_under_low_load(
    policy: GroupCommitPolicy, wakeups: list[int]
) -> None:
    with policy.active(), policy.active():
        policy.add_waiter(waits=False)
        assert not wakeups
        policy.add_waiter(waits=True)
        assert wakeups == [1]


async def test_group_commit_wakes_writer_when_all_active_turns_wait(
    policy: GroupCommitPolicy, wakeups: list[int]
) -> None:
    _flows(policy)
    wakeups.clear()
    with policy.active(), policy.active(), policy.active():
        policy.add_waiter(waits=True)
        policy.add_waiter(waits=True)
        assert not wakeups
        policy.add_waiter(waits=True)
        assert wakeups == [1]
    await asyncio.sleep(writer.LOOK_SECONDS * writer.LOOKS * 3)
    assert wakeups == [1]


async def test_group_commit_does_not_wait_for_slow_turn(
    policy: GroupCommitPolicy, wakeups: list[int]
) -> None:
    _flows(policy)
    wakeups.clear()
    with policy.active(), policy.active():
        policy.add_waiter(waits=True)
        assert not wakeups
        async with asyncio.timeout(100):
            while not wakeups:
                await asyncio.sleep(writer.LOOK_SECONDS)


async def test_group_commit_wakes_writer_despite_further_entries(
    policy: GroupCommitPolicy, wakeups: list[int]
) -> None:
    _flows(policy)
    wakeups.clear()
    with policy.active(), policy.active():
        policy.add_waiter(waits=True)
        async with asyncio.timeout(100):
            while not wakeups:
                policy.add_waiter(waits=False)
                await asyncio.sleep(0)


async def test_group_commit_returns_to_low_load(policy: GroupCommitPolicy, wakeups: list[int]) -> None:
    _flows(policy)
    for _ in range(writer.MANY):
        policy.add_waiter(waits=True)
        policy.resolved(1)
    wakeups.clear()
    with policy.active(), policy.active():
        policy.add_waiter(waits=True)
        assert wakeups == [1]


async def test_thread_wrongly_marked_fresh_is_appended_to(path: Path, say) -> None:
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
