"""Durability: strict commits reach the disk before they are answered, all others within a moment."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest

from rappd.errors import StoreError
from rappd.store import write_ahead_log
from rappd.store.store import Store
from rappd.store.verify import verify

A = "aaaaaaaa-0000-4000-8000-000000000001"
B = "bbbbbbbb-0000-4000-8000-000000000002"


class Disk:
    """The syncs, and the threads that made them; ``way`` shut holds every sync up."""

    def __init__(self) -> None:
        self.synced: list[str] = []
        self.way = threading.Event()
        self.way.set()
        self.fails = False
        self.really = write_ahead_log.to_disk

    def to_disk(self, descriptor: int) -> None:
        assert self.way.wait(100)
        if self.fails:
            raise OSError(5, "Input/output error")
        self.really(descriptor)
        self.synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    """The writer's syncs alone: the keeper's own come too late to be seen."""
    disk = Disk()
    monkeypatch.setattr(write_ahead_log, "to_disk", disk.to_disk)
    monkeypatch.setattr(write_ahead_log, "SYNC_SECONDS", 1000.0)
    return disk


async def test_strict_commit_waits_for_disk_and_next_one_does_not(path, disk: Disk, say) -> None:
    store = await Store.open(path)
    counts = []
    for strict in (False, True, True, False):
        await store.commit(say(A), strict=strict)
        counts.append(len(disk.synced))
    assert counts == [0, 1, 2, 2]
    assert set(disk.synced) == {"rappd.db-wal"}
    await store.close()


async def test_strict_store_syncs_every_commit(path, disk: Disk, say) -> None:
    store = await Store.open(path, strict=True)
    for turn in range(1, 4):
        await store.commit(say(A))
        assert len(disk.synced) == turn
    await store.close()


async def test_strict_commit_fails_when_sync_fails(path, disk: Disk, say) -> None:
    store = await Store.open(path)
    disk.fails = True
    with pytest.raises(StoreError):
        await store.commit(say(A), strict=True)
    disk.fails = False
    assert await store.commit(say(A), strict=True) == 2
    assert [event.n for event in await store.thread_events(A)] == [1, 2]
    await store.close()


async def test_synced_log_grows_in_large_steps(path: Path, tmp_path: Path, say) -> None:
    log = path.with_name("rappd.db-wal")
    store = await Store.open(path)
    await store.commit(say(A))
    assert log.stat().st_size < write_ahead_log.STEP_BYTES, "a log that is never synced needs no reserve"
    sizes = []
    for _ in range(60):
        await store.commit(say(A), strict=True)
        sizes.append(log.stat().st_size)
    await store.commit(say(A))
    assert sizes[-1] > write_ahead_log.STEP_BYTES
    assert len(set(sizes)) < 20, "some sizes are seen half way"
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for file in (path, log):
        shutil.copy(file, crashed)
    await store.close()
    report = verify(crashed / path.name)
    assert report.events == 62 and report.whole


async def test_strict_commit_survives_power_cut(path: Path, tmp_path: Path, monkeypatch, say) -> None:
    """The copy has the log as of its last sync, and of the database file what was there before the load."""
    monkeypatch.setattr(write_ahead_log, "SYNC_SECONDS", 1000.0)
    durable = b""

    def recording(descriptor: int) -> None:
        nonlocal durable
        really(descriptor)
        durable = Path(f"/proc/self/fd/{descriptor}").readlink().read_bytes()

    really = write_ahead_log.to_disk
    monkeypatch.setattr(write_ahead_log, "to_disk", recording)
    store = await Store.open(path)
    database = path.read_bytes()
    copies = []
    for turn in range(6):
        store.queue(say(A, f"queued {turn}"))
        seq = await store.commit(say(A, f"strict {turn}"), strict=True)
        copies.append((seq, durable))
        await store.commit(say(B, f"not strict {turn}"))
    await store.close()
    for number, (seq, log) in enumerate(copies):
        copy = tmp_path / f"power cut {number}" / path.name
        copy.parent.mkdir()
        copy.write_bytes(database)
        copy.with_name(f"{path.name}-wal").write_bytes(log)
        again = await Store.open(copy)
        assert (await again.counts()).events >= seq
        await again.close()
        assert verify(copy).problems == []


async def test_durable_waits_for_everything_put_before(path: Path, disk: Disk, say) -> None:
    store = await Store.open(path)
    disk.way.clear()
    written, durable = store.commit(say(A)), store.durable()
    assert await asyncio.wait_for(written, 100) == 1
    await asyncio.sleep(0.05)
    assert (disk.synced, durable.done()) == ([], False)
    disk.way.set()
    assert await asyncio.wait_for(durable, 100) == 1
    assert disk.synced == ["rappd.db-wal"]
    assert await store.durable() == 1  # with nothing put before it
    await store.close()


async def test_durable_fails_when_the_sync_fails(path: Path, disk: Disk, say) -> None:
    store = await Store.open(path)
    disk.fails = True
    written, durable = store.commit(say(A)), store.durable()
    assert await written == 1
    with pytest.raises(StoreError):
        await durable
    disk.fails = False
    await store.close()


async def test_log_that_cannot_be_extended_is_synced(path, monkeypatch, say) -> None:
    def full(descriptor: int, octets: bytes) -> int:
        raise OSError(28, "No space left on device")

    store = await Store.open(path)
    monkeypatch.setattr(write_ahead_log.os, "write", full)
    assert [await store.commit(say(A), strict=True) for _ in range(3)] == [1, 2, 3]
    monkeypatch.undo()
    await store.close()


async def test_strict_commits_share_syncs(path, disk: Disk, say) -> None:
    store = await Store.open(path)
    disk.way.clear()
    first = store.commit(say(A), strict=True)
    await asyncio.sleep(0.05)
    others = [store.commit(say(B), strict=True) for _ in range(50)]
    await asyncio.sleep(0.05)
    assert not any(one.done() for one in (first, *others))
    disk.way.set()
    assert await asyncio.gather(first, *others) == list(range(1, 52))
    await store.close()
    assert len(disk.synced) <= 5


async def test_other_commits_are_synced_soon(path: Path, monkeypatch, say) -> None:
    synced: list[str] = []

    def watched(descriptor: int) -> None:
        really(descriptor)
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    really = write_ahead_log.to_disk
    monkeypatch.setattr(write_ahead_log, "to_disk", watched)
    monkeypatch.setattr(write_ahead_log, "SYNC_SECONDS", 0.05)
    store = await Store.open(path)
    for turn in range(1, 4):
        await store.commit(say(A))
        async with asyncio.timeout(100):
            while len(synced) < turn:
                await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    assert synced == ["rappd.db-wal"] * 3  # and an idle record is left alone
    await store.close()


async def test_steady_commits_are_synced_once_an_interval(path: Path, monkeypatch, say) -> None:
    synced: list[float] = []
    really = write_ahead_log.to_disk
    monkeypatch.setattr(
        write_ahead_log, "to_disk", lambda descriptor: (really(descriptor), synced.append(time.monotonic()))
    )
    monkeypatch.setattr(write_ahead_log, "SYNC_SECONDS", 0.2)
    store = await Store.open(path)
    while len(synced) < 5:
        await store.commit(say(A))
        await asyncio.sleep(0.002)
    await store.close()
    assert min(later - earlier for earlier, later in pairwise(synced[:5])) >= 0.15
