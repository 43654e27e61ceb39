"""What reaches the disk when: strict commits before they are answered, all others within a moment."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path

import pytest

from neighborhoods.peer import Peer
from rappd.errors import StoreError
from rappd.store import keeper, syncing
from rappd.store.peer_rows import PeerRows
from rappd.store.store import Store
from rappd.store.verify import verify

A = "aaaaaaaa-0000-4000-8000-000000000001"
B = "bbbbbbbb-0000-4000-8000-000000000002"


class Disk:
    """What was synced, and by whom; ``way`` shut holds every sync up."""

    def __init__(self) -> None:
        self.synced: list[str] = []
        self.way = threading.Event()
        self.way.set()
        self.fails = False
        self.really = syncing.to_disk

    def to_disk(self, descriptor: int) -> None:
        assert self.way.wait(20)
        if self.fails:
            raise OSError(5, "Input/output error")
        self.really(descriptor)
        self.synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch, threads_sync: None) -> Disk:
    """The writer's syncs alone: the keeper's own come too late to be seen."""
    disk = Disk()
    monkeypatch.setattr(syncing, "to_disk", disk.to_disk)
    monkeypatch.setattr(keeper, "SYNC_SECONDS", 1000.0)
    return disk


async def test_a_strict_commit_waits_for_the_disk_and_the_next_one_does_not(path, disk: Disk, say) -> None:
    store = await Store.open(path)
    counts = []
    for strict in (False, True, True, False):
        await store.commit(say(A), strict=strict)
        counts.append(len(disk.synced))
    assert counts == [0, 1, 2, 2]
    assert set(disk.synced) == {"rappd.db-intake"}
    await store.close()
    assert disk.synced[2:] == ["rappd.db-wal"], "before that file is removed"


async def test_in_a_strict_store_every_commit_waits_for_the_disk(path, disk: Disk, say) -> None:
    store = await Store.open(path, strict=True)
    for turn in range(1, 4):
        await store.commit(say(A))
        assert len(disk.synced) == turn
    await store.close()


async def test_what_could_not_be_brought_to_the_disk_is_not_acknowledged(path, disk: Disk, say) -> None:
    store = await Store.open(path)
    disk.fails = True
    with pytest.raises(StoreError):
        await store.commit(say(A), strict=True)
    disk.fails = False
    assert await store.commit(say(A), strict=True) == 2
    assert [event.n for event in await store.thread_events(A)] == [1, 2]
    await store.close()


async def test_a_log_that_is_synced_does_not_grow_with_each_change(path: Path, tmp_path: Path, say) -> None:
    log = path.with_name("rappd.db-wal")
    store = await Store.open(path)
    peers = PeerRows(store)
    await store.commit(say(A))
    await store.flush()
    assert log.stat().st_size < syncing.ROOM, "who never syncs has no use for it"
    sizes = []
    for number in range(60):
        await peers.save_peer(Peer(str(number), "x", "mine", b"", b"", "", (), 1))
        sizes.append(log.stat().st_size)
    await store.commit(say(A))
    assert sizes[-1] > syncing.ROOM
    assert len(set(sizes)) < 20, "it grows in large steps, some seen half done"
    crashed = tmp_path / "crashed"
    crashed.mkdir()
    for file in (path, log, path.with_name("rappd.db-intake")):
        shutil.copy(file, crashed)
    await store.close()
    report = verify(crashed / path.name)
    assert report.events == 2 and report.whole


async def test_the_intake_grows_in_large_steps(path: Path, say) -> None:
    intake = path.with_name("rappd.db-intake")
    store = await Store.open(path)
    sizes = set()
    for _ in range(300):
        await store.commit(say(A, "x" * 9_000), strict=True)
        sizes.add(intake.stat().st_size)
    assert 1 < len(sizes) < 20, "some seen half done"
    await store.close()
    assert not intake.exists()
    assert verify(path).events == 300


async def test_a_log_that_cannot_be_written_ahead_is_synced_all_the_same(path, monkeypatch, say) -> None:
    def full(descriptor: int, octets: bytes) -> int:
        raise OSError(28, "No space left on device")

    store = await Store.open(path)
    monkeypatch.setattr(syncing.os, "write", full)
    assert [await store.commit(say(A), strict=True) for _ in range(3)] == [1, 2, 3]
    monkeypatch.undo()
    await store.close()


async def test_a_log_is_behind_until_a_sync_that_began_after_it_was_written(path: Path, disk: Disk) -> None:
    log = syncing.Log(path)
    path.parent.mkdir()
    path.with_name("rappd.db-wal").touch()
    assert not log.is_behind
    log.wrote()
    disk.way.clear()
    syncs = asyncio.create_task(asyncio.to_thread(log.sync))
    await asyncio.sleep(0.05)
    assert log.is_behind, "on its way is not there"
    log.wrote()
    disk.way.set()
    await syncs
    assert log.is_behind, "the second came later"
    disk.fails = True
    with pytest.raises(OSError, match="Input/output"):
        log.sync()
    assert log.is_behind
    disk.fails = False
    log.sync()
    assert not log.is_behind
    log.close()


async def test_many_who_wait_for_the_disk_share_its_syncs(path, disk: Disk, say) -> None:
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


async def test_other_commits_reach_the_disk_soon_by_themselves(
    path: Path, monkeypatch, say, threads_sync
) -> None:
    synced: list[str] = []

    def watched(descriptor: int) -> None:
        really(descriptor)
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    really = syncing.to_disk
    monkeypatch.setattr(syncing, "to_disk", watched)
    monkeypatch.setattr(keeper, "SYNC_SECONDS", 0.05)
    store = await Store.open(path)
    for turn in range(1, 4):
        await store.commit(say(A))
        async with asyncio.timeout(20):
            while len(synced) < turn:
                await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)
    assert synced == ["rappd.db-wal"] * 3  # and an idle record is left alone
    await store.close()
