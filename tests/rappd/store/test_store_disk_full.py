"""A full disk, or a lock that stays: the batch fails with a plain sentence, and the store goes on."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from envelopes.envelope import HELP, Envelope, new_id
from neighborhoods.delivery.outbox import Outbox, OutboxOwner, OutboxTiming
from rappd.daemon.home import Home
from rappd.dispatch.dispatcher import Dispatcher
from rappd.errors import NotFoundError, StoreError
from rappd.features.eggs import received as received_eggs
from rappd.features.eggs.received import ReceivedEggs
from rappd.notices.notices import Notices
from rappd.store import connections, writer
from rappd.store.egg_table import EggTable
from rappd.store.outbox_table import OutboxTable
from rappd.store.records import Record
from rappd.store.store import Store
from rappd.store.verify import verify
from twins.installer.errors import DiskFullError

PI = SimpleNamespace(fingerprint="ab" * 32, name="pi")
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


class Eggs:
    """Eggs that pi sends; ``told`` is what the owner hears."""

    def __init__(self, root: Path, store: Store) -> None:
        self.told: list[str] = []
        notices = Notices(listeners=[lambda notice: self.told.append(notice.key)])
        looked = SimpleNamespace(inspect=lambda path: {"egg": {"name": path.name}})
        operations = cast(Any, SimpleNamespace(home_eggs=looked))
        self.received = ReceivedEggs(Home(root), operations, EggTable(store), notices)

    async def send(self, id: str = A) -> dict[str, Any]:
        async def body() -> AsyncIterator[bytes]:
            yield b"an egg"

        return await self.received.take_in(PI, "rose.egg", body(), id)

    async def names(self) -> list[str]:
        return [row["name"] for row in await self.received.arrived()]


@pytest.mark.parametrize("kind", ["call for the outbox", "call that is accepted", "egg"])
async def test_what_cannot_be_recorded_counts_once_there_is_room(small, tmp_path: Path, kind: str) -> None:
    """Of what goes to and comes from other machines: refused first, then taken as if it came for the first time."""
    store, db = small
    dispatcher, eggs = Dispatcher(store), Eggs(tmp_path, store)
    dispatcher.route("desk", "brainstem", cast(Any, None))
    nobody, timing = OutboxOwner(lambda _: None, cast(Any, None)), OutboxTiming(lambda: 1)
    outbox = Outbox(OutboxTable(store), cast(Any, None), nobody, timing)

    async def take(id: str) -> Any:
        asked = Envelope(id, "brainstem_pi", "desk", HELP, {"user_input": "hello"})
        match kind:
            case "call for the outbox":
                return await outbox.put("aa", asked, "asks")
            case "call that is accepted":
                return await dispatcher.accept(asked)
            case _:
                return await eggs.send(id)

    (pages,) = db.execute("PRAGMA page_count").fetchone()
    db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="disk is full"):
        for _ in range(200):  # the first page of the table has room
            await take(new_id())
    with pytest.raises(StoreError, match="disk is full"):
        await take(A)
    assert A not in [row.id for row in await outbox.listing()]
    with pytest.raises(NotFoundError):  # pi is to send it again
        await eggs.received.received(PI, A)
    db.execute("PRAGMA max_page_count = 100000")
    first = await take(A)
    if kind == "call that is accepted":
        assert first is None, "it is new"
        assert (await take(A)).data == {"state": "accepted"}
    elif kind == "egg":
        assert await eggs.received.received(PI, A) == first == await take(A)
        assert (await eggs.names(), len(set(eggs.told))) == (["rose.egg"], 1)
    else:
        assert A in [row.id for row in await outbox.listing()]
    await outbox.stop()
    await store.close()


async def test_egg_that_cannot_be_noted_is_refused_and_leaves_nothing(
    store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    eggs = Eggs(tmp_path, store)
    with monkeypatch.context() as patch:
        patch.setattr(received_eggs, "write_atomically", full)
        with pytest.raises(DiskFullError, match="disk is full"):
            await eggs.send()
    assert (list((tmp_path / "eggs" / ".arrived").iterdir()), eggs.told) == ([], [])
    await eggs.send()
    assert (await eggs.names(), len(eggs.told)) == (["rose.egg"], 1)


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
