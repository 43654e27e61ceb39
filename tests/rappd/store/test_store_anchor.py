"""Anchors of a store: what is signed step by step is what a pass over the whole log finds."""

from __future__ import annotations

import asyncio
import random
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from fixtures.forged_log import FORGERIES, forge

from envelopes.identity.keys import IdentityKey
from rappd.daemon.anchoring import Anchoring
from rappd.errors import StoreError
from rappd.store import anchor_signing
from rappd.store.anchor_comparison import AnchorProof, Witness
from rappd.store.anchor_file import KEPT, NAME, AnchorFile
from rappd.store.anchor_signing import Anchorer, check
from rappd.store.connections import open_reading
from rappd.store.records import Record, ThreadInfo
from rappd.store.store import Store
from rappd.store.verify import VerifyReport, verify

KEY = IdentityKey.generate()
THREADS = [f"aaaaaaaa-0000-4000-8000-{number:012}" for number in range(300)]


@pytest.fixture
def anchorer(store: Store, path: Path) -> Iterator[Anchorer]:
    found = Anchorer(path, KEY)
    found.open_log()
    yield found
    found.close()


def verified(path: Path, *witnesses: Witness) -> VerifyReport:
    return verify(path, proof=AnchorProof(path, KEY.public, witnesses))


async def test_every_step_is_what_a_whole_pass_finds(
    store: Store, path: Path, say, anchorer: Anchorer
) -> None:
    """Threads with and without a description, titles that come later, batches of any size."""
    chance = random.Random(20_261_124)
    for _ in range(KEPT - 2):
        for _ in range(chance.randrange(1, 60)):
            thread = chance.choice(THREADS)
            if chance.random() < 0.4:
                title = chance.choice(["", "a title", "another"])
                session = chance.choice([None, '"a"', '"b"'])
                store.thread(ThreadInfo(thread, "brainstem", "guid", session, title, 1))
            if chance.random() < 0.8:
                store.queue(say(thread, f"text {chance.random()}"))
            if chance.random() < 0.1:
                await store.flush()
        await store.flush()
        await store.counts()
        report = await asyncio.to_thread(anchorer.advance)
        assert not report.problems
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM late_titles").fetchone()[0] > 5, "titles did come later"
    found = verified(path)
    assert found.problems == []
    assert found.anchored is not None
    assert found.anchored.unanchored == 0
    assert found.anchored.since is not None
    assert found.anchored.since.counter == 1, "all of them were compared"


async def test_title_that_comes_later_is_covered_from_then_on(
    store: Store, path: Path, say, about, anchorer: Anchorer, tamper
) -> None:
    await store.commit(say(THREADS[0]))
    await store.counts()
    anchorer.advance()
    store.thread(about(THREADS[0], "late"))
    await store.flush()
    await store.counts()
    assert verified(path).whole, "between the title and the next event"
    await store.commit(say(THREADS[0]))
    await store.counts()
    assert not anchorer.advance().problems
    assert verified(path).whole
    tamper("UPDATE threads SET title = 'other'")
    assert [one.thread for one in verified(path).problems if one.thread] == [THREADS[0]]


@pytest.mark.parametrize("name", sorted(set(FORGERIES) - {"cut_tail", "invent_event"}))
async def test_thread_that_goes_on_is_compared_before_it_is_signed(
    store: Store, path: Path, say, about, anchorer: Anchorer, name: str
) -> None:
    for thread in THREADS[:3]:
        store.thread(about(thread, "first"))
        await store.commit(say(thread, "first"))
    await store.counts()
    anchorer.advance()
    before = anchorer.newest
    forge(path, FORGERIES[name][0])
    forge(path, lambda db: db.execute(
        "INSERT INTO events SELECT (SELECT max(seq) + 9 FROM events), thread, n + 1, at, verb, sender, recipient, id,"
        " body, 0, hash, hash, parent FROM events WHERE thread = 1 ORDER BY n DESC LIMIT 1"
    ))  # fmt: skip
    report = anchorer.advance()
    assert report.problems
    assert not report.signed
    assert anchorer.newest == before
    assert anchorer.advance().problems == report.problems, "and so it stays"


async def test_anchor_that_cannot_be_saved_changes_nothing(
    store: Store, path: Path, say, anchorer: Anchorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    await store.commit(say(THREADS[0]))
    await store.counts()
    before = anchorer.newest

    def fails(*_: object, **__: object) -> None:
        raise StoreError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(AnchorFile, "save", fails)
        with pytest.raises(StoreError):
            anchorer.advance()
    assert anchorer.newest == before
    assert anchorer.advance().signed
    assert verified(path).whole


async def test_file_keeps_the_last_anchors_only(store: Store, path: Path, say, anchorer: Anchorer) -> None:
    for number in range(KEPT + 8):
        await store.commit(say(THREADS[number]))
        await store.counts()
        anchorer.advance()
    kept = [body["counter"] for body in anchorer.file.anchors()]
    assert kept == [1, *range(KEPT + 8 + 2 - KEPT, KEPT + 8 + 2)], "and the first, which says since when"
    assert verified(path).whole


async def test_check_reads_totals_alone(store: Store, path: Path, say, anchorer: Anchorer) -> None:
    await store.commit(say(THREADS[0]))
    await store.counts()
    anchorer.advance(closed=True)
    await store.commit(say(THREADS[0]))
    await store.counts()
    with closing(open_reading(path)) as db, AnchorFile(path.with_name(NAME)) as file:
        report = check(db, file, KEY.public)
        assert report.problems == ["1 events were put in while rappd was stopped"]
        assert "not signed by this machine" in check(db, file, IdentityKey.generate().public).problems[0]


async def test_witness_with_the_same_anchors_agrees(
    store: Store, path: Path, say, anchorer: Anchorer
) -> None:
    held: list[tuple[dict[str, object], str]] = []
    for number in range(5):
        record: Record = say(THREADS[number % 2], f"text {number}")
        await store.commit(record)
        await store.counts()
        report = anchorer.advance()
        assert report.anchor is not None
        held.append((report.anchor.to_json(), ""))
    assert verified(path, Witness("pi", held)).whole
    (path.with_name(NAME)).unlink()
    found = verified(path, Witness("pi", held))
    assert found.whole, "the log itself answers to a witness, whatever became of the local file"


async def test_witness_of_another_key_is_named(store: Store, path: Path, anchorer: Anchorer) -> None:
    other = IdentityKey.generate()
    assert anchorer.newest is not None
    from envelopes.identity.anchor import sign_anchor

    forged = sign_anchor(other, previous=None, counter=1, at=1, threads=0, events=0, root=bytes(32))
    witness = Witness("pi", [(forged.to_json(), "")])
    found = verified(path, witness)
    assert found.whole
    assert witness.trouble == "sent anchors that this machine did not sign"


async def test_start_without_an_anchor_is_no_alarm_later(
    store: Store, path: Path, say, anchorer: Anchorer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full when the daemon starts; it appends later, and then there is room."""
    anchorer.advance(closed=True)
    again = Anchorer(path, KEY)

    def fails(*_: object, **__: object) -> None:
        raise StoreError("The disk is full.")

    with monkeypatch.context() as patch:
        patch.setattr(AnchorFile, "save", fails)
        with pytest.raises(StoreError):
            again.open_log()
    await store.commit(say(THREADS[0]))
    await store.counts()
    report = again.advance()
    again.close()
    assert (report.problems, report.signed) == ([], True)


async def test_first_anchor_of_a_long_log_does_not_delay_the_start(
    store: Store, path: Path, say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anchor_signing, "_MANY", 3)
    for thread in THREADS[:5]:
        await store.commit(say(thread))
    await store.counts()
    anchoring = Anchoring(path, KEY, store)
    await anchoring.start()
    assert anchoring.report.anchor is None
    async with asyncio.timeout(100):
        while anchoring.report.anchor is None:
            await asyncio.sleep(0.01)
    assert anchoring.report.anchor.note == "first"
    await anchoring.close()
    assert verified(path).whole


async def test_anchor_signed_before_1970_is_read_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, key = tmp_path / "rappd.db", IdentityKey.generate()
    store = await Store.open(path)
    await store.commit(Record("aaaaaaaa-0000-4000-8000-000000000001", "HELP", "guid", "desk", "1", b"{}", 1))
    with monkeypatch.context() as early:
        early.setattr(time, "time_ns", lambda: -86_400 * 10**9)
        anchorer = Anchorer(path, key)
        assert anchorer.open_log().signed
        anchorer.close()
    anchorer = Anchorer(path, key)
    assert anchorer.open_log().problems == []
    anchorer.close()
    await store.close()
