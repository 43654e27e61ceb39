"""What reaches the disk when: strict commits at once, all others within a moment."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest

from rappd.store import connections, keeper
from rappd.store.store import Store

A = "aaaaaaaa-0000-4000-8000-000000000001"


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the writer's connection is told, from its opening on."""
    told: list[str] = []

    def traced(path: Path) -> sqlite3.Connection:
        db = untraced(path)
        db.set_trace_callback(told.append)
        return db

    untraced = connections.open_writing
    monkeypatch.setattr(connections, "open_writing", traced)
    return told


def _commits(told: list[str]) -> list[str]:
    """``FULL`` or ``NORMAL`` for each transaction."""
    levels, level = [], "NORMAL"
    for statement in told:
        if statement.startswith("PRAGMA synchronous = "):
            level = statement.split()[-1]
        elif statement == "COMMIT":
            levels.append(level)
    return levels


async def test_a_strict_commit_waits_for_the_disk_and_the_next_one_does_not(path, statements, say) -> None:
    store = await Store.open(path)
    for strict in (False, True, True, False):
        await store.commit(say(A), strict=strict)
    await store.close()
    assert _commits(statements) == ["NORMAL", "FULL", "FULL", "NORMAL"]


async def test_in_a_strict_store_every_commit_waits_for_the_disk(path, statements, say) -> None:
    store = await Store.open(path, strict=True)
    for _ in range(3):
        await store.commit(say(A))
    await store.close()
    assert _commits(statements) == ["FULL"] * 3


async def test_other_commits_reach_the_disk_soon_by_themselves(path: Path, monkeypatch, say) -> None:
    synced: list[str] = []

    def watched(descriptor: int) -> None:
        really(descriptor)
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    really = keeper._sync
    monkeypatch.setattr(keeper, "_sync", watched)
    monkeypatch.setattr(keeper, "SYNC_SECONDS", 0.05)
    store = await Store.open(path)
    for turn in range(1, 4):
        await store.commit(say(A))
        async with asyncio.timeout(20):
            while len(synced) < turn:
                await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    await store.close()
    assert synced == ["rappd.db-wal"] * 3  # and an idle record is left alone
