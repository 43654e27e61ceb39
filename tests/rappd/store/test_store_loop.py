"""Nothing the store does blocks the event loop."""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path

import pytest
from blockbuster import BlockBuster, BlockingError, blockbuster_ctx

from rappd.store.store import Store

A = "aaaaaaaa-0000-4000-8000-000000000001"


@pytest.fixture
def guarded() -> BlockBuster:
    """Raises ``BlockingError`` at any blocking call on the loop's thread."""
    with blockbuster_ctx() as buster:
        yield buster


async def test_opening_appending_reading_and_closing_never_block(guarded, path: Path, say, about) -> None:
    store = await Store.open(path)
    for turn in range(30):
        store.thread(about(A, f"turn {turn}"))
        store.queue(say(A))
        await store.commit(
            say(A, verb="DONE", recipient="guid", id="turn", answers=True), strict=turn % 2 == 0
        )
    await store.flush()
    assert await store.counts() == (1, 60)
    assert len(await store.threads()) == 1
    assert len(await store.thread_events(A[:4])) == 60
    assert len(await store.recent_events(5)) == 5
    assert await store.answer_to("guid", "turn")
    await store.close()


async def test_the_guard_would_notice(guarded, tmp_path: Path) -> None:
    with pytest.raises(BlockingError):
        sqlite3.connect(tmp_path / "x.db").execute("SELECT 1")
    await asyncio.sleep(0)
