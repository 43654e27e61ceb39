"""What never came is known without the tables; what perhaps came is never taken for new."""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappd.store import seen
from rappd.store.changes import Taking
from rappd.store.seen import Seen
from rappd.store.store import Store

A = "aaaaaaaa-0000-4000-8000-000000000001"
PEER = "twin_0123456789abcdef"


async def _known(found: Seen) -> None:
    async with asyncio.timeout(20):
        while found.may_hold("nobody", "nothing") and found.may_hold("nobody", "nothing else"):
            await asyncio.sleep(0.005)


def _taking(say, id: str) -> Taking:
    return Taking(PEER, id, "HELP", "started", "brainstem", A, b"", 1, [say(A, sender=PEER, id=id)])


@given(st.lists(st.tuples(st.text(), st.text()), max_size=200))
def test_what_was_added_is_never_taken_for_new(keys: list[tuple[str, str]]) -> None:
    some = seen._Filter(8)  # far too small for all of them
    for key in keys:
        some.add(hash(key))
    assert all(some.may_hold(hash(key)) for key in keys)


@pytest.mark.parametrize("expected", [1 << 12, 1 << 16])
def test_hardly_anything_new_is_taken_for_what_came(expected: int) -> None:
    some = seen._Filter(expected)
    for _ in range(expected):
        some.add(hash((PEER, str(uuid.uuid4()))))
    wrong = sum(some.may_hold(hash((PEER, str(uuid.uuid4())))) for _ in range(20_000))
    assert wrong < 20_000 * 0.01


async def test_what_the_tables_had_at_the_start_came_before(path: Path, say, monkeypatch) -> None:
    """What is under way, what was answered to a machine, and what was answered to who named his turn."""
    monkeypatch.setattr(seen, "ROWS", 2)
    store = await Store.open(path)
    for id in ("1", "2", "3"):
        await store.take(_taking(say, id))
    await store.commit_reply(say(A, verb="DONE", recipient=PEER, id="2"), PEER, "2", "HELP")
    await store.commit(say(A, verb="DONE", recipient="guid", id="named", answers=True))
    await store.close()
    found = Seen(path)
    await _known(found)
    came = [found.may_hold(PEER, id) for id in ("1", "2", "3")]
    assert (came, found.may_hold("guid", "named")) == ([True] * 3, True)
    assert not found.may_hold(PEER, "4") and not found.may_hold("guid", "1")
    found.add(PEER, "4")
    assert found.may_hold(PEER, "4")
    found.close()


async def test_until_that_is_read_everything_may_have_come(path: Path, say, monkeypatch) -> None:
    store = await Store.open(path)
    for id in map(str, range(10)):
        await store.take(_taking(say, id))
    await store.close()
    monkeypatch.setattr(seen, "ROWS", 1)
    monkeypatch.setattr(seen, "PAUSE_SECONDS", 1000.0)
    found = Seen(path)
    await asyncio.sleep(0.1)
    assert found.may_hold(PEER, "new")
    since = time.monotonic()
    found.close()
    assert time.monotonic() - since < 20, "closing waits for no pause"
    assert "store-seen" not in {thread.name for thread in threading.enumerate()}


async def test_where_the_tables_cannot_be_read_they_are_asked_each_time(tmp_path: Path, caplog) -> None:
    (tmp_path / "rappd.db").write_bytes(b"no record at all, and long enough to be looked at" * 100)
    found = Seen(tmp_path / "rappd.db")
    found._thread.join()
    assert found.may_hold(PEER, "new")
    assert "asked for every envelope" in caplog.text
    found.close()
