"""A full disk, or a lock that stays: the batch fails with a plain sentence, and the store goes on."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from rappd.errors import StoreError
from rappd.store import connections, writer
from rappd.store.records import Record
from rappd.store.store import Store
from rappd.store.verify import verify

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"


def _big(thread: str, size: int) -> Record:
    return Record(thread, "HELP", "guid", "desk", "big", b"x" * size, 1)


@pytest.fixture
async def small(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Store, sqlite3.Connection]:
    """A store that may have 64 pages, and its writer's connection."""
    opened: list[sqlite3.Connection] = []

    def limited(path: Path) -> sqlite3.Connection:
        db = unlimited(path)
        db.execute("PRAGMA max_page_count = 64")
        opened.append(db)
        return db

    unlimited = connections.open_writing
    monkeypatch.setattr(connections, "open_writing", limited)
    return await Store.open(path), opened[0]


async def test_batch_too_large_fails_whole_and_next_commits(small, path: Path, say) -> None:
    store, _ = small
    await store.commit(say(A, "before"))
    store.queue(say(B, "with it"))
    with pytest.raises(StoreError, match="disk is full") as caught:
        await store.commit(_big(A, 1_000_000))
    assert caught.value.code == "store"
    assert str(path.parent) in caught.value.do
    assert [event.n for event in await store.thread_events(A)] == [1]  # what was there stays readable
    assert await store.commit(say(A, "after")) == 2
    await store.close()
    report = verify(path)
    assert (report.events, report.problems) == (2, [])


async def test_everybody_in_the_batch_is_told(small, path: Path, say) -> None:
    store, _ = small
    futures = [store.commit(say(A)), store.commit(_big(B, 1_000_000)), store.commit(say(A))]
    results = await asyncio.gather(*futures, return_exceptions=True)
    failed = [isinstance(result, StoreError) for result in results]
    await store.close()
    assert failed[1]
    assert verify(path).events == failed.count(False)


async def test_no_acknowledgement_covers_a_queued_record_that_was_lost(small, path: Path, say) -> None:
    store, _ = small
    store.queue(_big(A, 1_000_000))
    for _ in range(2):  # in the batch that fails, and after it
        with pytest.raises(StoreError, match="disk is full"):
            await store.flush()
    await store.commit(say(B, "another thread is not concerned"))
    store.queue(say(A, "also cut off"))
    with pytest.raises(StoreError, match="disk is full"):
        await store.commit(say(A, "the answer"))
    assert (await store.counts()).events == 1
    await store.commit(say(A, "a new turn"))
    assert await store.flush() == 2
    await store.close()
    assert verify(path).problems == []


async def test_loss_on_a_thread_that_nobody_uses_does_not_fail_flushes_for_ever(
    small, say, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, _ = small
    store.queue(_big(A, 1_000_000))
    with pytest.raises(StoreError, match="disk is full"):
        await store.flush()
    monkeypatch.setattr(writer, "LOST_SECONDS", 0.0)
    await store.commit(say(B))
    await store.flush()
    with pytest.raises(StoreError, match="disk is full"):  # its own thread has a gap
        await store.commit(say(A))
    await store.commit(say(A, "a new turn"))
    await store.close()


async def test_full_disk_fails_batches_until_there_is_space(small, path: Path, say) -> None:
    store, db = small
    kept = 0
    for _ in range(60):
        try:
            await store.commit(_big(A, 9_000))
            kept += 1
        except StoreError:
            db.execute("PRAGMA max_page_count = 100000")
    assert 10 < kept < 60
    await store.close()
    report = verify(path)
    assert (report.events, report.problems) == (kept, [])


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
async def test_a_disk_that_is_really_full(tiny_disk: Path, say) -> None:
    path = tiny_disk / "rappd.db"
    store = await Store.open(path)
    filler = tiny_disk / "filler"
    filler.write_bytes(b"x" * 700_000)
    kept = 0
    with pytest.raises(StoreError, match="disk is full"):
        while True:
            await store.commit(_big(A, 20_000))
            kept += 1
    assert len(await store.thread_events(A)) == kept
    filler.unlink()
    for _ in range(10):
        await store.commit(say(A))
    await store.close()
    report = verify(path)
    assert (report.events, report.problems) == (kept + 10, [])


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
async def test_killed_store_opens_on_full_disk_with_everything(path: Path, tiny_disk: Path, say) -> None:
    """Acknowledged events stand in SQLite's log, which needs no room to be read."""
    store = await Store.open(path)
    for _ in range(5):
        await store.commit(say(A, "x" * 9_000))
    full = tiny_disk / path.name
    for end in ("", "-wal"):
        shutil.copy(f"{path}{end}", f"{full}{end}")
    await store.close()
    filler = tiny_disk / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)) == 4096:
            pass
    with pytest.raises(StoreError, match="disk is full"):  # no room for the index of the log
        await Store.open(full)
    os.truncate(filler, filler.stat().st_size - (40 << 10))
    again = await Store.open(full)
    assert len(await again.thread_events(A)) == 5
    for _ in range(2):
        with pytest.raises(StoreError, match="disk is full"):
            await again.commit(_big(B, 200_000))
    assert len(await again.thread_events(A)) == 5
    await again.close()  # the log cannot be written back, and stays
    assert (verify(full).events, verify(full).problems) == (5, [])
    filler.unlink()
    again = await Store.open(full)
    assert await again.commit(say(A, "goes on")) == 6
    await again.close()
    assert (verify(full).events, verify(full).problems) == (6, [])


async def test_a_program_that_keeps_the_file_locked_is_blamed(path: Path, say, monkeypatch) -> None:
    monkeypatch.setattr(connections, "BUSY_MS", 50)
    store = await Store.open(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="locked") as caught:
        await store.commit(say(A))
    assert caught.value.do
    other.execute("ROLLBACK")
    other.close()
    assert await store.commit(say(A)) == 1
    await store.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
async def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StoreError, match="cannot be opened") as caught:
        await Store.open(tmp_path / "rappd.db")
    assert str(tmp_path) in caught.value.do


async def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a folder")
    with pytest.raises(StoreError, match="could not be used") as caught:
        await Store.open(tmp_path / "home" / "rappd.db")
    assert caught.value.do
