"""The intake: what was acknowledged is in it or in them, whatever happens in between."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shutil
import sqlite3
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappd.backup import create
from rappd.errors import StoreError
from rappd.store import backlog, connections, intake, keeper, syncing, writer
from rappd.store.changes import Taken, Taking
from rappd.store.intake import Intake, beside
from rappd.store.peer_rows import PeerRows
from rappd.store.reading import Reader
from rappd.store.store import Store
from rappd.store.verify import verify

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
PEER = "twin_0123456789abcdef"


@pytest.fixture
def never_carried(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is behind stays behind, until somebody asks."""
    monkeypatch.setattr(backlog, "CARRY_SECONDS", 1000.0)


@pytest.fixture
def killed(path: Path, tmp_path: Path) -> Callable[..., Path]:
    """``killed(…)``: the record as it stands on the disk now, elsewhere. The tables' log as it is, or another one."""

    def copy(log: bytes | None = None) -> Path:
        there = tmp_path / f"killed-{len(list(tmp_path.iterdir()))}"
        there.mkdir()
        for end in ("", "-wal", "-intake"):
            shutil.copy(f"{path}{end}", there)
        if log is not None:
            (there / "rappd.db-wal").write_bytes(log)
        return there / path.name

    return copy


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Callable[[Path], Path]]:
    """``full_disk(record)``: the same record on a disk that has no room left."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")

    def move(record: Path) -> Path:
        for end in ("", "-wal", "-intake"):
            shutil.copy(f"{record}{end}", disk)
        sqlite3.connect(disk / record.name).execute("SELECT 1 FROM events").fetchone()  # makes -shm
        with contextlib.suppress(OSError), (disk / "filler").open("wb", buffering=0) as filler:
            while filler.write(bytes(4096)) == 4096:
                pass
        return disk / record.name

    yield move
    subprocess.run(["umount", "-l", disk], check=True)


def _in_tables(path: Path) -> int:
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return int(db.execute("SELECT count(*) FROM events").fetchone()[0])
    finally:
        db.close()


def _taking(say, id: str) -> Taking:
    asked = say(A, sender=PEER, id=id)
    return Taking(PEER, id, "HELP", "started", "brainstem", A, b"", 1, [asked])


async def test_what_is_acknowledged_reaches_the_tables_by_itself_soon(store, path: Path, say) -> None:
    await store.commit(say(A))
    async with asyncio.timeout(20):
        while not await asyncio.to_thread(_in_tables, path):
            await asyncio.sleep(0.005)


async def test_what_a_killed_process_left_is_there_at_the_next_start(
    never_carried, path: Path, say, about, killed
) -> None:
    store = await Store.open(path)
    store.thread(about(A, "a title"))
    assert [await store.commit(say(A, str(n))) for n in range(3)] == [1, 2, 3]
    assert await store.take(_taking(say, "1")) is None
    assert await store.take(_taking(say, "2")) is None
    reply = say(A, "done", verb="DONE", recipient=PEER, id="2")
    assert await store.commit_reply(reply, PEER, "2", "HELP") == 6
    copy = killed()
    assert _in_tables(copy) == 0
    await store.close()
    again = await Store.open(copy)
    assert await again.take(_taking(say, "1")) == Taken("started", A)
    assert await again.take(_taking(say, "2")) == Taken("done", A)
    assert await again.answer_to(PEER, "2") == reply.body
    assert (await again.find_thread(A)).title == "a title"
    assert await again.commit(say(A, "goes on")) == 7
    await again.close()
    assert (verify(copy).events, verify(copy).problems) == (7, [])


async def test_who_reads_after_a_kill_sees_it_without_a_start(never_carried, path: Path, say, killed) -> None:
    store = await Store.open(path)
    for _ in range(3):
        await store.commit(say(A))
    first, second = killed(), killed()
    await store.close()
    with Reader(first) as reader:
        assert [event.n for event in reader.thread_events(A)] == [1, 2, 3]
    assert verify(second).events == 3
    assert not beside(second).exists()


async def test_who_cannot_carry_what_was_left_reads_what_the_tables_have(
    never_carried, path: Path, say, killed, monkeypatch, caplog
) -> None:
    store = await Store.open(path)
    await store.commit(say(A))
    await store.flush()
    await store.commit(say(A))
    copy = killed()
    await store.close()

    def refuse(path: Path) -> None:
        raise StoreError("This folder cannot be written.")

    monkeypatch.setattr(writer, "Writer", refuse)
    with Reader(copy) as reader:
        assert reader.counts().events == 1
    assert "cannot be written" in caplog.text
    monkeypatch.undo()
    assert verify(copy).events == 2


async def test_who_reads_beside_a_writer_waits_for_it(path: Path, say, monkeypatch) -> None:
    monkeypatch.setattr(backlog, "CARRY_SECONDS", 0.3)
    store = await Store.open(path)

    def look() -> int:
        with Reader(path) as reader:
            return reader.counts().events

    for turn in range(1, 4):
        await store.commit(say(A))
        assert await asyncio.to_thread(look) == turn
    await store.close()


async def test_a_backup_has_what_was_acknowledged(path: Path, tmp_path: Path, say, monkeypatch) -> None:
    monkeypatch.setattr(backlog, "CARRY_SECONDS", 0.3)
    store = await Store.open(path)
    await store.commit(say(A))
    copy = await asyncio.to_thread(create._record, path, tmp_path)
    await store.close()
    assert copy is not None
    assert verify(copy).events == 1


async def test_reading_a_recorded_answer_waits_for_nothing_that_is_not_about_it(
    never_carried, store: Store, path: Path, say
) -> None:
    await store.commit(say(A, verb="DONE", recipient="guid", id="mine", answers=True))
    assert await store.answer_to("guid", "another") is None
    assert await asyncio.to_thread(_in_tables, path) == 0
    assert await store.answer_to("guid", "mine") is not None
    assert await asyncio.to_thread(_in_tables, path) == 1


async def test_a_taking_that_comes_twice_at_once_is_taken_once(never_carried, store: Store, say) -> None:
    twice = [store.take(_taking(say, "1")), store.take(_taking(say, "1"))]
    assert sorted(map(str, await asyncio.gather(*twice))) == ["None", str(Taken("started", A))]
    assert await store.take(_taking(say, "1")) == Taken("started", A)
    assert (await store.counts()).events == 1


@pytest.mark.parametrize("far", ["started", "done"])
async def test_of_several_takings_at_once_one_that_came_before_is_told_how_far_it_is(
    never_carried, store: Store, say, far: str
) -> None:
    assert await store.take(_taking(say, "1")) is None
    if far == "done":
        await store.commit_reply(say(A, verb="DONE", recipient=PEER, id="1"), PEER, "1", "HELP")
    await store.flush()
    taken = await asyncio.gather(*(store.take(_taking(say, id)) for id in ("2", "1", "3")))
    assert taken == [None, Taken(far, A), None]
    again = await asyncio.gather(*(store.take(_taking(say, id)) for id in ("4", "5")))
    assert again == [None, None]
    assert [event.id for event in await store.thread_events(A)][-4:] == ["2", "3", "4", "5"]


async def test_what_was_synced_survives_a_power_cut(
    never_carried, path: Path, say, killed, monkeypatch, threads_sync
) -> None:
    """Of the tables' log there is what was synced last; of the intake, all of it was."""
    on_the_disk = b""

    def to_disk(descriptor: int) -> None:
        nonlocal on_the_disk
        really(descriptor)
        name = Path(f"/proc/self/fd/{descriptor}").readlink()
        if name.name == "rappd.db-wal":
            on_the_disk = name.read_bytes()

    really = syncing.to_disk
    monkeypatch.setattr(syncing, "to_disk", to_disk)
    monkeypatch.setattr(keeper, "SYNC_SECONDS", 1000.0)
    monkeypatch.setattr(intake, "FULL", 3_000)
    store = await Store.open(path)
    peers = PeerRows(store)
    copies = []
    for turn in range(1, 13):
        await store.commit(say(A, "x" * 300), strict=True)
        if turn % 3 == 0:
            await store.change(_seen(str(turn)), strict=False)  # in the log alone, and before what follows
            await store.commit(say(A, "x" * 300), strict=True)
            copies.append((turn + turn // 3, {str(n) for n in range(3, turn + 1, 3)}, killed(on_the_disk)))
    assert await peers.peers() == []
    await store.close()
    for events, revoked, copy in copies:
        again = await Store.open(copy)
        assert {row[0] for row in await again.rows("SELECT fingerprint FROM revoked_peers")} == revoked
        await again.close()
        report = verify(copy)
        assert (report.events, report.problems) == (events, [])


@pytest.mark.parametrize(("body", "file"), [("x", "rappd.db-intake"), ("x" * 100_000, "rappd.db-wal")])
async def test_who_waits_for_the_disk_alone_waits_for_what_was_put_before(
    path: Path, say, monkeypatch, threads_sync, body: str, file: str
) -> None:
    synced: list[str] = []
    go = threading.Event()

    def to_disk(descriptor: int) -> None:
        assert go.wait(20)
        really(descriptor)
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    really = syncing.to_disk
    monkeypatch.setattr(syncing, "to_disk", to_disk)
    monkeypatch.setattr(keeper, "SYNC_SECONDS", 1000.0)
    store = await Store.open(path)
    written, on_disk = store.commit(say(A, body)), store.on_disk()
    assert await asyncio.wait_for(written, 10) == 1
    await asyncio.sleep(0.05)
    assert (synced, on_disk.done()) == ([], False)
    go.set()
    assert await asyncio.wait_for(on_disk, 10) == 1
    assert synced == [file]
    assert await store.on_disk() == 1  # with nothing put before it
    await store.close()


async def test_who_waits_for_the_disk_alone_is_told_when_it_fails(
    path: Path, say, monkeypatch, threads_sync
) -> None:
    def to_disk(descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    store = await Store.open(path)
    monkeypatch.setattr(syncing, "to_disk", to_disk)
    written, on_disk = store.commit(say(A, "x")), store.on_disk()
    assert await written == 1
    with pytest.raises(StoreError):
        await on_disk
    monkeypatch.undo()
    await store.close()


def _seen(fingerprint: str):
    from rappd.store.changes import Change

    return Change("INSERT INTO revoked_peers(fingerprint, at) VALUES(?, 1)", (fingerprint,))


async def test_the_tables_are_on_the_disk_before_the_file_is_emptied_or_removed(
    path: Path, say, killed, monkeypatch
) -> None:
    synced: list[tuple[str, bool]] = []

    def to_disk(descriptor: int) -> None:
        name = Path(f"/proc/self/fd/{descriptor}").readlink()
        there = name.with_name("rappd.db-intake")
        synced.append((name.name, there.exists() and there.read_bytes().count(b"acknowledged") > 0))
        really(descriptor)

    really = syncing.to_disk
    monkeypatch.setattr(syncing, "to_disk", to_disk)
    monkeypatch.setattr(keeper, "SYNC_SECONDS", 1000.0)
    store = await Store.open(path)
    assert synced == []
    await store.commit(say(A, "acknowledged"), strict=True)
    await store.flush()
    assert synced == [("rappd.db-intake", True)]
    copy = killed()
    await store.close()
    assert synced[1:] == [("rappd.db-wal", True)]
    synced.clear()
    store = await Store.open(copy)
    assert synced == [("rappd.db-wal", True)]
    assert beside(copy).read_bytes().count(b"acknowledged") == 0
    await store.close()


async def test_what_another_version_wrote_is_refused_and_kept(path: Path, monkeypatch) -> None:
    await (await Store.open(path)).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        mark, carried = db.execute("SELECT mark, carried FROM intake").fetchone()
    file = Intake.open(path)
    assert file is not None
    file.begin(mark, carried)
    file.append(b"\x91\x91\xa7unknown")
    file.close(remove=False)
    for _ in range(2):
        with pytest.raises(StoreError, match="another version") as caught:
            await Store.open(path)
        assert caught.value.do
    file = Intake.open(path)
    assert file is not None
    assert len(file.left(mark, carried)) == 1
    file.close(remove=True)


async def test_the_file_is_started_over_instead_of_growing(path: Path, say, monkeypatch, killed) -> None:
    monkeypatch.setattr(intake, "FULL", 20_000)
    monkeypatch.setattr(intake, "ROOM", 1 << 16)
    monkeypatch.setattr(intake, "RESERVE", 1 << 15)
    store = await Store.open(path)
    for _ in range(400):
        await store.commit(say(A, "x" * 500))
    assert beside(path).stat().st_size < 300_000
    copy = killed()
    await store.close()
    assert (verify(copy).events, verify(copy).problems) == (400, [])
    assert (verify(path).events, verify(path).problems) == (400, [])


async def test_what_belongs_to_another_moment_or_record_is_left_out(
    never_carried, path: Path, say, killed
) -> None:
    store = await Store.open(path)
    await store.commit(say(A))
    await store.flush()
    early = killed()
    for _ in range(3):
        await store.commit(say(A))
        await store.flush()
    await store.close()
    store = await Store.open(path)  # a new file, which begins after the fourth
    await store.commit(say(A))
    late = beside(path).read_bytes()
    await store.close()
    beside(early).write_bytes(late)
    assert (verify(early).events, verify(early).problems) == (1, [])
    other = path.with_name("other.db")
    await (await Store.open(other)).close()
    beside(other).write_bytes(late)
    assert verify(other).events == 0
    store = await Store.open(other)
    assert await store.commit(say(A)) == 1
    await store.close()


async def test_what_the_tables_cannot_take_now_waits_and_nothing_more_is_acknowledged(
    never_carried, path: Path, say, monkeypatch, killed
) -> None:
    opened: list[sqlite3.Connection] = []

    def limited(path: Path) -> sqlite3.Connection:
        db = unlimited(path)
        opened.append(db)
        return db

    unlimited = connections.open_writing
    monkeypatch.setattr(connections, "open_writing", limited)
    store = await Store.open(path)
    for _ in range(5):
        await store.commit(say(A, "x" * 9_000))
    opened[0].execute("PRAGMA max_page_count = 1")  # the least: what it has now
    for _ in range(2):
        with pytest.raises(StoreError, match="disk is full"):
            await store.flush()
        with pytest.raises(StoreError, match="disk is full"):
            await store.commit(say(B))
        with pytest.raises(StoreError, match="disk is full"):
            await store.counts()
    copy = killed()
    opened[0].execute("PRAGMA max_page_count = 100000")
    assert await store.commit(say(A)) == 6
    await store.close()
    assert (verify(path).events, verify(path).problems) == (6, [])
    assert (verify(copy).events, verify(copy).problems) == (5, [])


async def test_what_a_killed_process_left_fits_on_a_full_disk(
    never_carried, path: Path, tmp_path: Path, say, killed, full_disk
) -> None:
    """What the intake holds in reserve is given to the tables at the start, too."""
    store = await Store.open(path)
    for _ in range(5):
        await store.commit(say(A, "x" * 9_000))
    copy = killed()
    await store.close()
    there = full_disk(copy)
    again = await Store.open(there)
    assert len(await again.thread_events(A)) == 5
    await again.close()
    assert (verify(there).events, verify(there).problems) == (5, [])


async def test_a_record_that_the_tables_refuse_spoils_only_its_thread(never_carried, path: Path, say) -> None:
    store = await Store.open(path)
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(
        "CREATE TRIGGER no BEFORE INSERT ON events WHEN NEW.id = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END"
    )
    for thread, id in ((A, "1"), (B, "bad"), (A, "2"), (B, "3")):
        await store.commit(say(thread, id=id))
    await store.commit(say(A, id="4"))
    with pytest.raises(StoreError):
        await store.flush()
    written, on_disk = store.commit(say(A, id="6")), store.on_disk()
    assert await asyncio.gather(written, on_disk)  # what another thread lost is nothing to it
    with pytest.raises(StoreError):  # an answer would cover the gap
        await store.commit(say(B))
    assert [event.id for event in await store.thread_events(A)] == ["1", "2", "4", "6"]
    db.execute("DROP TRIGGER no")
    db.close()
    await store.commit(say(B, id="5"))
    assert [event.id for event in await store.thread_events(B)] == ["3", "5"]
    await store.close()
    assert verify(path).problems == []


async def test_a_reader_that_looks_at_the_file_for_a_moment_keeps_no_writer_from_it(path: Path, say) -> None:
    await (await Store.open(path)).close()
    descriptor = os.open(beside(path), os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    threading.Timer(0.1, os.close, (descriptor,)).start()
    store = await Store.open(path)
    assert store._writer._backlog.intake is not None
    await store.commit(say(A))
    await store.close()


def test_who_waits_for_a_file_that_is_removed_meanwhile_gets_the_next_one(
    tmp_path: Path, monkeypatch
) -> None:
    """Else it would write where nobody finds it."""
    path = tmp_path / "rappd.db"
    first = Intake.open(path)
    assert first is not None

    def lock(descriptor: int, how: int) -> None:
        if not removed.is_set():  # it has the file that is about to go
            first.close(remove=True)
            removed.set()
        flock(descriptor, how)

    removed = threading.Event()
    flock = fcntl.flock
    monkeypatch.setattr(intake.fcntl, "flock", lock)
    second = Intake.open(path)
    assert second is not None
    second.begin(b"m" * 16, 0)
    second.append(b"found")
    found = Intake(os.open(beside(path), os.O_RDONLY), path)
    assert found.left(b"m" * 16, 0) == [(1, b"found")]
    second.close(remove=True)
    found.close(remove=False)


async def test_of_two_writers_one_has_the_file_and_the_other_does_without(
    store, path: Path, say, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    other = await Store.open(path)
    assert other._writer._backlog.intake is None
    assert "another process writes this record, too" in caplog.text
    await other.commit(say(B))
    assert _in_tables(path) == 1
    await other.close()
    assert beside(path).exists()
    await store.commit(say(A))


@pytest.mark.parametrize("end", ["nothing", "a part of the last", "a stranger's bytes", "a bit turned over"])
def test_frames_are_read_until_the_first_that_is_not_whole(tmp_path: Path, end: str) -> None:
    path = tmp_path / "rappd.db"
    file = Intake.open(path)
    assert file is not None
    file.begin(b"m" * 16, 7)
    payloads = [os.urandom(n) for n in (0, 1, 300, 5_000)]
    assert [file.append(payload) for payload in payloads] == [8, 9, 10, 11]
    size = file._at
    file.close(remove=False)
    raw = bytearray(beside(path).read_bytes()[:size])
    expected = payloads[:-1]
    if end == "nothing":
        expected = payloads
    elif end == "a part of the last":
        del raw[-1]
    elif end == "a stranger's bytes":
        raw[-5_000:] = os.urandom(5_000)
    else:
        raw[-2_500] ^= 1
    beside(path).write_bytes(raw)
    file = Intake.open(path)
    assert file is not None
    assert file.left(b"m" * 16, 7) == list(zip(range(8, 12), expected, strict=False))
    assert file.left(b"m" * 16, 9) == list(zip(range(10, 12), expected[2:], strict=False))
    assert file.left(b"m" * 16, 6) == []
    assert file.left(b"o" * 16, 7) == []
    file.close(remove=True)
    assert not beside(path).exists()


@given(st.binary(max_size=400), st.lists(st.binary(max_size=40), max_size=5), st.integers(0, 500))
def test_whatever_stands_in_the_file_what_is_read_was_written(
    noise: bytes, payloads: list[bytes], at: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rappd.db"
        file = Intake.open(path)
        assert file is not None
        file.begin(b"m" * 16, 0)
        for payload in payloads:
            file.append(payload)
        whole = beside(path).read_bytes()
        os.pwrite(file._descriptor, noise, at)
        if len(noise) % 2:
            os.ftruncate(file._descriptor, at)
        found = [payload for _, payload in file.left(b"m" * 16, 0)]
        assert found == payloads[: len(found)]
        if beside(path).read_bytes() == whole:
            assert found == payloads
        file.close(remove=True)
