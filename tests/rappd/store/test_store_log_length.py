"""The write-ahead log under load: it starts over instead of growing, by pages that are estimated; no reader stops the writer."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
import uuid
from pathlib import Path

import pytest

from envelopes.envelope import new_id, thread_id
from rappd.store import write_ahead_log
from rappd.store.connections import open_reading
from rappd.store.records import Record
from rappd.store.store import Store
from rappd.store.verify import verify
from rappd.store.write_ahead_log import WalCheckpointer
from rappd.store.write_operations import InboxClaim

A = "aaaaaaaa-0000-4000-8000-000000000001"
BODY = b"x" * 20_000


@pytest.fixture(autouse=True)
def soon_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write_ahead_log, "CHECKPOINT_PAGES", 100)
    monkeypatch.setattr(write_ahead_log, "LONG_FRAMES", 500)


class LaggingCheckpoints:
    """The checkpointer's connection where the writer is always faster: a checkpoint never reaches the log's end.

    A reader that begins before the next commit stops it there, and leaves when the checkpoint is over.
    """

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._path = path
        self.count = 0
        self.load_is_over = False

    def execute(self, command: str) -> sqlite3.Cursor:
        if "wal_checkpoint" not in command:
            return self._db.execute(command)
        reader = open_reading(self._path)
        try:
            reader.execute("BEGIN")
            (seen,) = reader.execute("SELECT max(seq) FROM events").fetchone()
            self._wait_for_commit(seen)
            found = self._db.execute(command)
        finally:
            reader.close()
        self.count += 1
        return found

    def close(self) -> None:
        self._db.close()

    def _wait_for_commit(self, seen: int) -> None:
        latest = open_reading(self._path)
        while latest.execute("SELECT max(seq) FROM events").fetchone()[0] == seen and not self.load_is_over:
            time.sleep(0.001)
        latest.close()


def times_started_over(log: Path) -> int:
    """As the log's own header counts them (https://sqlite.org/fileformat2.html#walformat)."""
    return int.from_bytes(log.read_bytes()[12:16], "big")


async def test_the_log_starts_over_although_the_load_never_pauses(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await Store.open(path)
    checkpointer = store._writer._checkpointer
    lagging = LaggingCheckpoints(checkpointer._db, path)
    monkeypatch.setattr(checkpointer, "_db", lagging)
    written = 0

    async def load(thread: str) -> None:
        nonlocal written
        record = Record(thread, "HELP", "a", "b", "id", BODY, 1)
        while written < 12_000_000 or (lagging.count < 12 and written < 80_000_000):
            await asyncio.gather(*(store.commit(record) for _ in range(5)))
            written += 5 * len(BODY)

    try:
        async with asyncio.timeout(100):
            await asyncio.gather(*(load(f"{A}{n}") for n in range(4)))
    finally:
        lagging.load_is_over = True
    restarts = times_started_over(Path(f"{path}-wal"))
    await store.close()
    assert restarts > 0
    assert lagging.count >= 12
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


PEER = "brainstem_0123456789abcdef"


@pytest.mark.parametrize("abreast", [1, 16])
@pytest.mark.parametrize("kind", ["turns", "calls", "old threads"])
async def test_the_estimate_is_about_what_the_log_holds(
    path: Path, say, about, monkeypatch: pytest.MonkeyPatch, kind: str, abreast: int
) -> None:
    estimated: list[int] = []
    monkeypatch.setattr(WalCheckpointer, "wrote", lambda _, pages: estimated.append(pages))
    store = await Store.open(path)
    old = [thread_id("brainstem", "guid", f'"{n}"') for n in range(2_000)]
    await asyncio.gather(*(store.commit(say(thread)) for thread in old))

    async def turn(number: int) -> None:
        thread = thread_id("brainstem", "guid", f'"{new_id()}"')
        store.thread(about(thread))
        for verb in ("HELP", "HELP", "DONE"):
            store.queue(say(thread, "x" * 200, verb=verb))
        await store.commit(say(thread, "x" * 200, verb="DONE"))

    async def call(number: int) -> None:
        thread, id = thread_id("brainstem", PEER, f'"{new_id()}"'), str(uuid.uuid4())
        records = [about(thread), say(thread, "x" * 200, sender=PEER, id=id)]
        await store.claim(InboxClaim(PEER, id, "HELP", "started", "brainstem", thread, b"", 1, records))
        reply = say(thread, "x" * 200, verb="DONE", recipient=PEER, id=id, answers=True)
        await store.commit_reply(reply, PEER, id, "HELP", strict=False)

    async def go_on(number: int) -> None:
        await store.commit(say(old[number * 617 % len(old)], "x" * 200))

    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA wal_checkpoint(RESTART)")
        estimated.clear()
        one = {"turns": turn, "calls": call, "old threads": go_on}[kind]
        for start in range(0, 320, abreast):
            await asyncio.gather(*(one(start + n) for n in range(abreast)))
        _, written, _ = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    assert written / 2 < sum(estimated) < written * 2
    await store.close()
