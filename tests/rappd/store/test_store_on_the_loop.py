"""What few wait for is appended on the event loop; whatever could hold the loop up is for the writer's thread."""

from __future__ import annotations

import asyncio
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from rappd.errors import StoreError
from rappd.store import backlog, intake, keeper, syncing, writer
from rappd.store.backlog import Backlog
from rappd.store.changes import Change, Taken, Taking
from rappd.store.intake import Intake
from rappd.store.kernel_sync import KernelSync
from rappd.store.store import Store
from rappd.store.verify import verify

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
PEER = "twin_0123456789abcdef"
LOOP, THREAD = True, False


@pytest.fixture
def appended(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, int]]:
    """(whether on the loop, how many entries) for each append that succeeded."""
    found: list[tuple[bool, int]] = []

    def take(self: Backlog, batch: Any, **how: Any) -> Any:
        taken = really(self, batch, **how)
        if taken is not None:
            found.append((threading.current_thread() is threading.main_thread(), len(batch)))
        return taken

    really = Backlog.take
    monkeypatch.setattr(Backlog, "take", take)
    monkeypatch.setattr(backlog, "CARRY_SECONDS", 1000.0)
    return found


@pytest.fixture
async def awake(path: Path, say, appended) -> Any:
    """A store that has written before, knows what came, and carries nothing by itself."""
    store = await Store.open(path)
    await store.commit(say(B))
    await _settled(store)
    appended.clear()
    yield store
    await store.close()


async def _settled(store: Store) -> None:
    """Its thread sleeps, and what came before is known."""
    async with asyncio.timeout(20):
        while store._writer._seen.may_hold("nobody", "nothing") or store._writer._at_work.locked():
            await asyncio.sleep(0.005)
    await asyncio.sleep(0.02)


def _taking(say, id: str) -> Taking:
    return Taking(PEER, id, "HELP", "started", "brainstem", A, b"", 1, [say(A, sender=PEER, id=id)])


async def test_what_one_waits_for_is_appended_at_once_with_all_before_it(
    awake: Store, say, about, appended
) -> None:
    awake.thread(about(A))
    awake.queue(say(A))
    written = awake.commit(say(A))
    assert (written.done(), appended) == (True, [(LOOP, 3)])
    assert await written == 3
    assert [event.n for event in await awake.thread_events(A)] == [1, 2]


async def test_a_machine_that_is_asked_waits_for_no_thread_either(awake: Store, say, appended) -> None:
    awake.queue(say(A), hasten=True)
    for _ in range(4):
        await asyncio.sleep(0)
    assert appended == [(LOOP, 1)]


async def test_several_at_once_are_for_the_thread(awake: Store, say, appended) -> None:
    assert await asyncio.gather(*(awake.commit(say(A)) for _ in range(40))) == list(range(2, 42))
    assert [where for where, _ in appended].count(LOOP) <= 1
    assert verify(awake._path).problems == []


async def test_while_the_thread_is_at_it_nothing_waits_on_the_loop(awake: Store, say, appended) -> None:
    with awake._writer._at_work:
        since = time.monotonic()
        written = awake.commit(say(A))
        assert (written.done(), time.monotonic() - since < 0.5) == (False, True)
        await asyncio.sleep(0.05)
        assert not written.done()
    assert await asyncio.wait_for(written, 10) == 2
    assert appended == [(THREAD, 1)]


async def test_what_came_before_is_told_by_the_tables_whoever_asks(
    awake: Store, path: Path, say, appended
) -> None:
    assert await awake.take(_taking(say, "1")) is None
    await _settled(awake)
    assert await awake.take(_taking(say, "1")) == Taken("started", A)
    await awake.commit_reply(say(A, verb="DONE", recipient=PEER, id="1"), PEER, "1", "HELP")
    await awake.close()
    again = await Store.open(path)
    await _settled(again)
    appended.clear()
    assert await again.take(_taking(say, "1")) == Taken("done", A)
    assert appended == [], "the tables were asked"
    await _settled(again)
    assert await again.take(_taking(say, "2"), strict=False) is None
    assert appended == [(LOOP, 1)]
    await again.close()
    ids = [event.id for event in await _events(path) if event.sender == PEER]
    assert sorted(ids) == ["1", "2"], "each is begun once"


async def _events(path: Path) -> list[Any]:
    store = await Store.open(path)
    try:
        return await store.recent_events()
    finally:
        await store.close()


async def test_a_change_and_what_is_large_are_for_the_thread(awake: Store, say, appended) -> None:
    await awake.change(
        Change("INSERT INTO revoked_peers(fingerprint, at) VALUES(?, 1)", ("x",)), strict=False
    )
    await awake.commit(say(A, "x" * (backlog.MOST_BYTES + 1)))
    assert appended == []
    assert await awake.rows("SELECT fingerprint FROM revoked_peers") == [("x",)]


async def test_the_file_grows_by_the_thread_alone(awake: Store, say, appended, monkeypatch) -> None:
    """To write a megabyte of zeros would hold the loop up."""
    grown: list[threading.Thread] = []

    def make_room(self: Intake) -> bool:
        if not self.has_room:
            grown.append(threading.current_thread())
        return really(self)

    really = Intake.make_room
    monkeypatch.setattr(Intake, "make_room", make_room)
    monkeypatch.setattr(backlog, "MOST_BYTES", 1 << 30)
    for turn in range(2, 32):
        assert await awake.commit(say(A, "x" * 50_000)) == turn
        await asyncio.sleep(0.001)
    assert grown and threading.main_thread() not in grown
    assert LOOP in [where for where, _ in appended]


async def test_a_disk_that_is_overloaded_holds_the_loop_up_once(
    awake: Store, say, appended, monkeypatch
) -> None:
    def append(self: Intake, payload: bytes) -> int:
        time.sleep(2 * writer.SLOW_SECONDS)
        return really(self, payload)

    really = Intake.append
    monkeypatch.setattr(Intake, "append", append)
    for turn in range(2, 6):
        assert await awake.commit(say(A)) == turn
        await asyncio.sleep(0.05)
    assert [where for where, _ in appended] == [LOOP, THREAD, THREAD, THREAD]
    monkeypatch.setattr(awake._writer, "_too_slow_until", time.monotonic())
    await awake.commit(say(A))
    assert appended[-1] == (LOOP, 1), "it is tried again some time"


async def test_where_it_cannot_be_appended_nothing_is_lost(awake: Store, say, appended, monkeypatch) -> None:
    def append(self: Intake, payload: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Intake, "append", append)
    awake.queue(say(A, "first"))
    assert await awake.commit(say(A, "second")) == 3
    assert appended == []
    assert [event.n for event in await awake.thread_events(A)] == [1, 2]


async def test_a_lost_record_is_told_to_who_waits_next_on_its_thread(awake: Store, say) -> None:
    awake._writer._lost[A] = StoreError("lost")
    with pytest.raises(StoreError, match="lost"):
        await awake.commit(say(A))
    assert await awake.commit(say(A)) == 2


async def test_one_that_is_lost_at_the_last_moment_is_told_too(awake: Store, say, monkeypatch) -> None:
    """The thread loses it while it has the tables, and gives them back."""

    class Lock:
        locked = awake._writer._at_work.locked

        def acquire(self, blocking: bool = True) -> bool:
            if not blocking:
                awake._writer._lost[A] = StoreError("lost")
            return really.acquire(blocking)

        def release(self) -> None:
            really.release()

        __enter__ = acquire

        def __exit__(self, *_: object) -> None:
            self.release()

    really = awake._writer._at_work
    monkeypatch.setattr(awake._writer, "_at_work", Lock())
    with pytest.raises(StoreError, match="lost"):
        await awake.commit(say(A))


async def test_what_is_appended_is_carried_although_the_loop_is_held_up(path: Path, say) -> None:
    store = await Store.open(path)
    for turn in range(3):
        await _settled(store)
        await store.commit(say(A))
        until = time.monotonic() + 10
        while store._writer.is_behind and time.monotonic() < until:
            time.sleep(0.005)  # on the loop
        assert not store._writer.is_behind, turn
        await asyncio.sleep(0.03 if turn else 2 * backlog.LATELY_SECONDS)
    await store.close()


async def test_after_the_end_nothing_is_appended(path: Path, say, appended) -> None:
    store = await Store.open(path)
    await _settled(store)
    store.queue(say(A), hasten=True)
    await store.close()
    assert len(await _events(path)) == 1
    with pytest.raises(StoreError):
        await store.commit(say(A))


async def _by_the_kernel(store: Store, say) -> None:
    """The kernel's sync is ready, and the file was synced once: from then on it needs no thread."""
    await store.commit(say(B), strict=True)
    kernel = store._writer._kernel
    kernel.put([], -1)
    assert kernel._opening is not None
    await asyncio.to_thread(kernel._opening.join)
    if kernel._context is None:
        pytest.skip("the kernel has no sync of its own here")
    await _settled(store)


async def test_who_waits_for_the_disk_is_told_by_the_kernel(awake: Store, say, appended, monkeypatch) -> None:
    def to_disk(descriptor: int) -> None:
        raise AssertionError("no thread should have to")

    await _by_the_kernel(awake, say)
    monkeypatch.setattr(keeper, "SYNC_SECONDS", 1000.0)
    with monkeypatch.context() as patched:
        patched.setattr(syncing, "to_disk", to_disk)
        written = awake.commit(say(A), strict=False)
        on_disk = awake.on_disk()
        assert (written.done(), on_disk.done(), awake._writer._kernel.is_busy) == (True, False, True)
        assert await asyncio.wait_for(on_disk, 10) == 3
        strict = awake.commit(say(A), strict=True)
        assert not strict.done()
        assert await asyncio.wait_for(strict, 10) == 4


async def test_who_waits_for_the_kernel_is_told_when_the_disk_fails(awake: Store, say, monkeypatch) -> None:
    def put(self: KernelSync, waiting: Any, descriptor: int) -> bool:
        asyncio.get_running_loop().call_soon(self._told, waiting, OSError(5, "Input/output error"))
        return True

    await _by_the_kernel(awake, say)
    with monkeypatch.context() as patched:
        patched.setattr(KernelSync, "put", put)
        with pytest.raises(StoreError):
            await awake.commit(say(A), strict=True)
    assert await awake.commit(say(A), strict=True) == 4


async def test_what_the_kernel_brought_to_the_disk_is_all_that_was_acknowledged(
    awake: Store, path: Path, say, monkeypatch, tmp_path: Path
) -> None:
    """As after a power cut: of the file there is what stood in it when the sync began, of the tables' log nothing."""
    copies: list[Path] = []

    def put(self: KernelSync, waiting: Any, descriptor: int) -> bool:
        copy = tmp_path / f"power cut {len(copies)}"
        copy.mkdir()
        shutil.copy(path, copy)
        shutil.copy(intake.beside(path), copy)
        copies.append(copy / path.name)
        return really(self, waiting, descriptor)

    await awake.flush()
    await asyncio.to_thread(_checkpointed, path)
    await _by_the_kernel(awake, say)
    really = KernelSync.put
    monkeypatch.setattr(KernelSync, "put", put)
    events = []
    for turn in range(5):
        awake.queue(say(A, f"before {turn}"))
        events.append(await awake.commit(say(A, f"strict {turn}"), strict=True))
        await _settled(awake)
    assert len(copies) == 5, "each went by the kernel"
    for copy, seq in zip(copies, events, strict=True):
        again = await Store.open(copy)
        assert (await again.counts()).events == seq
        await again.close()
        assert verify(copy).problems == []


def _checkpointed(path: Path) -> None:
    import sqlite3

    db = sqlite3.connect(path)
    db.execute("PRAGMA wal_checkpoint(PASSIVE)")
    db.close()
