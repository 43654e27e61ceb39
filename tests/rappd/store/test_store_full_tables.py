"""A full disk: a change, a taking or a reply is there whole or not at all, and who waits is told."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from neighborhoods.durable_tables import OutgoingEnvelope
from rappd.errors import StoreError
from rappd.store import connections
from rappd.store.inbox_table import InboxTable
from rappd.store.outbox_table import OutboxTable
from rappd.store.records import Record
from rappd.store.store import Store
from rappd.store.verify import verify
from rappd.store.write_operations import ClaimState, InboxClaim

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
PEER = "twin_0123456789abcdef"


def _taking(id: str, size: int, thread: str = A) -> InboxClaim:
    asked = Record(thread, "HELP", PEER, "desk", id, b"x" * size, 1)
    return InboxClaim(PEER, id, "HELP", "started", "brainstem", thread, b"", 1, [asked])


def _out(id: str, size: int) -> OutgoingEnvelope:
    return OutgoingEnvelope(0, "aa", id, "HELP", "t", "asks", b"x" * size, "queued", 0, 1, 1, 1 << 60)


def _reply(id: str, size: int, thread: str = A) -> Record:
    return Record(thread, "DONE", "desk", PEER, id, b"y" * size, 2)


@pytest.fixture
async def small(path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store that may have 80 pages."""

    def limited(path: Path):
        db = unlimited(path)
        db.execute("PRAGMA max_page_count = 80")
        return db

    unlimited = connections.open_writing
    monkeypatch.setattr(connections, "open_writing", limited)
    return await Store.open(path)


async def test_a_taking_that_does_not_fit_leaves_no_row(small: Store, path: Path) -> None:
    inbox = InboxTable(small)
    with pytest.raises(StoreError, match="disk is full"):
        await inbox.claim(_taking("1", 1_000_000))
    assert await inbox.find(PEER, "1", "HELP") is None
    assert await inbox.claim(_taking("1", 10)) is None  # the same one again, and it fits now
    with pytest.raises(StoreError, match="disk is full"):
        await small.commit_reply(_reply("1", 1_000_000), PEER, "1", "HELP")
    assert await inbox.claim(_taking("1", 10)) == ClaimState("started", A)
    assert await small.commit_reply(_reply("1", 10), PEER, "1", "HELP") == 2
    await small.close()
    assert (verify(path).events, verify(path).problems) == (2, [])


async def test_a_taking_on_a_thread_that_lost_a_record_is_told(small: Store, path: Path) -> None:
    small.queue(_reply("lost", 1_000_000))
    with pytest.raises(StoreError, match="disk is full"):
        await small.flush()
    assert await small.claim(_taking("other", 10, B)) is None
    with pytest.raises(StoreError, match="disk is full"):
        await small.claim(_taking("1", 10))
    assert await small.claim(_taking("1", 10)) is None
    await small.close()
    assert verify(path).problems == []


async def test_a_row_for_a_peer_that_does_not_fit_is_not_there(small: Store) -> None:
    outbox = OutboxTable(small)
    first = await outbox.put(_out("1", 10))
    with pytest.raises(StoreError, match="disk is full"):
        await outbox.put(_out("2", 1_000_000))
    with pytest.raises(StoreError, match="disk is full"):
        await outbox.move([first], "done", answer=b"x" * 1_000_000)
    assert [(row.id, row.state) for row in await outbox.outgoing()] == [("1", "queued")]
    await outbox.move([first], "done", answer=b"small")
    assert await outbox.put(_out("2", 10)) > first
    await small.close()


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", disk], capture_output=True)
    if mounted.returncode:
        pytest.skip("no file system may be mounted here")
    yield disk
    subprocess.run(["umount", "-l", disk], check=True)


@pytest.mark.needs_root
@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
async def test_a_disk_that_is_really_full_keeps_what_was_acknowledged(tiny_disk: Path) -> None:
    path = tiny_disk / "rappd.db"
    store = await Store.open(path)
    inbox, outbox = InboxTable(store), OutboxTable(store)
    filler = tiny_disk / "filler"
    filler.write_bytes(b"x" * 900_000)
    taken: list[str] = []
    done: list[str] = []
    numbers: list[int] = []

    async def receive(worker: int) -> None:
        for turn in range(1_000):
            id = f"{worker}-{turn}"
            await inbox.claim(_taking(id, 3_000))
            taken.append(id)
            await store.commit_reply(_reply(id, 3_000), PEER, id, "HELP")
            done.append(id)

    async def send(worker: int) -> None:
        for turn in range(1_000):
            numbers.append(await outbox.put(_out(f"{worker}-{turn}", 3_000)))

    working = [*(receive(worker) for worker in range(4)), *(send(worker) for worker in range(2))]
    results = await asyncio.gather(*working, return_exceptions=True)
    assert {str(result)[:16] for result in results} == {"The disk is full"}
    assert done and numbers

    unfinished = {row.id for row in await inbox.unfinished()}
    assert unfinished == set(taken) - set(done)
    assert [row.number for row in await outbox.outgoing(most=10_000)] == sorted(numbers)
    assert (await store.counts()).events == len(taken) + len(done)
    filler.unlink()
    for id in unfinished:
        await store.commit_reply(_reply(id, 10), PEER, id, "HELP")
    assert await inbox.unfinished() == []
    await store.close()
    report = verify(path)
    assert (report.events, report.problems) == (2 * len(taken), [])
