"""The write-ahead log under load: it starts over instead of growing, and a reader cannot stop the writer."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from rappd.store import write_ahead_log
from rappd.store.connections import open_reading
from rappd.store.records import Record
from rappd.store.store import Store
from rappd.store.verify import verify

A = "aaaaaaaa-0000-4000-8000-000000000001"
BODY = b"x" * 20_000


@pytest.fixture(autouse=True)
def soon_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_ahead_log, "CHECKPOINT_PAGES", 100)
    monkeypatch.setattr(write_ahead_log, "LONG_FRAMES", 500)


async def test_the_log_starts_over_although_the_load_never_pauses(path: Path) -> None:
    store = await Store.open(path)
    log = Path(f"{path}-wal")
    written = 0
    stop = False

    async def load(thread: str) -> None:
        nonlocal written
        record = Record(thread, "HELP", "a", "b", "id", BODY, 1)
        while not stop:
            await asyncio.gather(*(store.commit(record) for _ in range(20)))
            written += 20 * len(BODY)

    loads = [asyncio.create_task(load(f"{A}{n}")) for n in range(4)]
    async with asyncio.timeout(100):
        # A log that never starts over holds everything that was ever written.
        while written < 10_000_000 or log.stat().st_size > written / 3:
            await asyncio.sleep(0.01)
    stop = True
    await asyncio.gather(*loads)
    await store.close()
    assert path.stat().st_size > written
    assert verify(path).whole


async def test_a_reader_that_stays_in_an_old_moment_stops_nobody(path: Path) -> None:
    store = await Store.open(path)
    await store.commit(Record(A, "HELP", "a", "b", "1", b"{}", 1))
    await store.flush()
    db = open_reading(path)
    db.execute("BEGIN")
    assert db.execute("SELECT count(*) FROM events").fetchone() == (1,)
    for n in range(600):
        await store.commit(Record(A, "HELP", "a", "b", str(n), BODY, 1))
    assert db.execute("SELECT count(*) FROM events").fetchone() == (1,)
    db.close()
    await store.close()
    assert verify(path).events == 601
