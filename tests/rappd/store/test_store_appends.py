"""Appending: what was committed is there, in order, chained, and survives closing."""

from __future__ import annotations

import asyncio
import sqlite3
import stat
import uuid
from pathlib import Path

import pytest

from envelopes.codecs.emergence import GENESIS, link
from rappd.errors import StoreError
from rappd.store import transactions
from rappd.store.records import Record
from rappd.store.store import Store
from rappd.store.verify import verify
from rappd.store.write_operations import MOST, MultiRowStatement

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"


async def test_a_turn_comes_back_verbatim_and_chained(store, say, about) -> None:
    asked = say(A, "Käse? 🧀", id="11111111-0000-4000-8000-000000000001")
    answer = say(A, "Yes.", verb="DONE", sender="desk_4f2a", recipient="guid", id=asked.id)
    store.thread(about(A, "Käse? 🧀", '{"k":1}'))
    store.queue(asked)
    assert await store.commit(answer) == 2

    first, second = await store.thread_events(A)
    for event, record, n in ((first, asked, 1), (second, answer, 2)):
        assert (event.seq, event.n, event.thread, event.at) == (n, n, A, record.at)
        assert (event.verb, event.sender, event.recipient) == (record.verb, record.sender, record.recipient)
        assert (event.id, event.body) == (record.id, record.body)
    assert first.prev == GENESIS
    assert first.hash == second.prev == link(GENESIS, asked.at, asked.body)
    assert second.hash == link(first.hash, answer.at, answer.body)

    row = await store.find_thread(A)
    assert (row.workspace, row.caller, row.session, row.title) == (
        "brainstem",
        "guid",
        '{"k":1}',
        "Käse? 🧀",
    )
    assert (row.count, row.head, row.updated) == (2, second.hash, answer.at)


async def test_a_chain_goes_on_after_closing_and_opening(path: Path, say, about) -> None:
    for turn in range(3):
        store = await Store.open(path)
        store.thread(about(A))
        store.queue(say(A, f"question {turn}"))
        await store.commit(say(A, f"answer {turn}", verb="DONE"))
        await store.close()
    report = verify(path)
    assert (report.events, report.threads, report.problems) == (6, 1, [])


async def test_commits_resolve_in_order_with_all_before_them_readable(store, say) -> None:
    threads = [str(uuid.uuid4()) for _ in range(20)]
    resolved: list[int] = []
    waiting = []
    for turn in range(50):
        for thread in threads:
            store.queue(say(thread, f"q{turn}"))
            future = store.commit(say(thread, f"a{turn}", verb="DONE"))
            future.add_done_callback(lambda done: resolved.append(done.result()))
            waiting.append(future)
    seqs = await asyncio.gather(*waiting)
    assert seqs == list(range(2, 2001, 2))
    assert resolved == seqs
    for thread in threads:
        events = await store.thread_events(thread)
        assert [event.n for event in events] == list(range(1, 101))
        assert [b'"q' in event.body for event in events] == [True, False] * 50


async def test_resolved_commit_is_visible_with_queued_records(store, path: Path, say) -> None:
    from rappd.store.reader import Reader

    for turn in range(1, 30):
        store.queue(say(A))
        store.queue(say(B))
        await store.commit(say(A, verb="DONE"))
        with Reader(path) as reader:
            assert reader.counts().events == 3 * turn


async def test_when_a_flush_resolves_every_connection_sees_it(store, path: Path, say) -> None:
    from rappd.store.reader import Reader

    with Reader(path) as reader:
        for turn in range(1, 30):
            store.queue(say(A))
            await store.commit(say(A, verb="DONE"))
            await store.flush()
            assert reader.counts().events == 2 * turn


async def test_a_queued_record_is_written_although_nobody_waits(store, say) -> None:
    store.queue(say(A))
    async with asyncio.timeout(100):
        while (await store.counts()).events == 0:
            await asyncio.sleep(0.01)


async def test_closing_writes_what_was_queued(path: Path, say) -> None:
    store = await Store.open(path)
    for _ in range(500):
        store.queue(say(A))
    await store.close()
    assert verify(path).events == 500


async def test_a_cancelled_wait_takes_nothing_back_and_disturbs_nobody(store, say) -> None:
    left = store.commit(say(A, "left"))
    left.cancel()
    assert await store.commit(say(A, "stayed")) == 2
    assert [b"left" in event.body for event in await store.thread_events(A)] == [True, False]


async def test_strict_commits_mix_with_others(store, path: Path, say) -> None:
    futures = [store.commit(say(A, str(turn)), strict=turn % 3 == 0) for turn in range(60)]
    assert await asyncio.gather(*futures) == list(range(1, 61))
    assert verify(path).whole


async def test_a_strict_store_keeps_the_same_record(path: Path, say) -> None:
    store = await Store.open(path, strict=True)
    await asyncio.gather(*(store.commit(say(A, str(turn))) for turn in range(20)))
    await store.close()
    assert verify(path).events == 20


async def test_thread_keeps_first_title_and_latest_session(store, about) -> None:
    store.thread(about(A, "", None))
    store.thread(about(A, "first words", '"one"'))
    store.thread(about(A, "later words", '"two"'))
    other = about(A, "more", None)
    other.caller, other.workspace = "somebody else", "elsewhere"
    store.thread(other)
    await store.flush()
    row = await store.find_thread(A)
    assert (row.title, row.session, row.caller, row.workspace) == (
        "first words",
        '"two"',
        "guid",
        "brainstem",
    )
    assert (row.count, row.head) == (0, GENESIS)


async def test_the_rules_for_titles_hold_across_a_restart(path: Path, about) -> None:
    for title, session in (("first words", None), ("later words", '"two"'), ("", None)):
        store = await Store.open(path)
        store.thread(about(A, title, session))
        await store.flush()
        row = await store.find_thread(A)
        await store.close()
    assert (row.title, row.session) == ("first words", '"two"')


async def test_a_record_on_a_thread_nobody_described_makes_the_thread(store, path: Path, say) -> None:
    await store.commit(say(A, sender="pi_91c3"))
    row = await store.find_thread(A)
    assert (row.caller, row.workspace, row.title, row.count) == ("pi_91c3", "", "", 1)


async def test_more_threads_than_the_writer_remembers(path: Path, say, about, monkeypatch) -> None:
    monkeypatch.setattr(transactions, "KNOWN_THREADS", 3)
    store = await Store.open(path)
    threads = [str(uuid.uuid4()) for _ in range(10)]
    for turn in range(4):
        for thread in threads:
            store.thread(about(thread, f"title {turn}"))
            await store.commit(say(thread))
    rows = await store.threads()
    assert len(store._writer._transactions._heads._known) == 3
    await store.close()
    assert {(row.count, row.title) for row in rows} == {(4, "title 0")}
    assert verify(path).whole


async def test_one_bad_record_fails_alone(store, path: Path, say) -> None:
    bad = say(A)
    bad.sender = "\ud800"
    early = say(A)
    early.at = -1
    futures = [
        store.commit(say(A)),
        store.commit(bad),
        store.commit(say(B)),
        store.commit(early),
        store.commit(say(A)),
    ]
    results = await asyncio.gather(*futures, return_exceptions=True)
    assert [isinstance(result, StoreError) for result in results] == [False, True, False, True, False]
    report = verify(path)
    assert (report.events, report.problems) == (3, [])


async def test_two_stores_on_one_file_both_append(store, path: Path, say, about) -> None:
    other = await Store.open(path)
    for turn in range(5):
        for one in (store, other):
            one.thread(about(A))
            one.thread(about(B))
            await asyncio.gather(one.commit(say(A, str(turn))), one.commit(say(B, str(turn))))
    await other.close()
    report = verify(path)
    assert (report.events, report.threads, report.problems) == (20, 2, [])


async def test_only_the_owner_may_read_the_files(store, path: Path, say) -> None:
    await store.commit(say(A))
    files = sorted(file for file in path.parent.iterdir() if file.name.startswith("rappd.db"))
    assert [file.name for file in files] == ["rappd.db", "rappd.db-shm", "rappd.db-wal"]
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


async def test_a_file_left_open_to_others_is_closed_to_them(path: Path, say) -> None:
    await (await Store.open(path)).close()
    path.chmod(0o644)
    store = await Store.open(path)
    await store.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_a_closed_store_says_so(path: Path, say) -> None:
    store = await Store.open(path)
    await store.close()
    await store.close()
    for use in (lambda: store.queue(say(A)), lambda: store.commit(say(A))):
        with pytest.raises(StoreError, match="closed"):
            use()
    with pytest.raises(StoreError, match="closed"):
        await store.counts()


async def test_large_and_empty_bodies(store, path: Path) -> None:
    bodies = [b"", b"\0" * 3_000_000, bytes(range(256))]
    for n, body in enumerate(bodies):
        await store.commit(Record(A, "HELP", "a", "b", str(n), body, 1))
    assert [event.body for event in await store.thread_events(A)] == bodies
    assert verify(path).whole


@pytest.mark.parametrize("count", [0, 1, 2, MOST - 1, MOST, MOST + 1, 3 * MOST + 5])
def test_any_number_of_rows(count: int) -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY, b TEXT UNIQUE, c BLOB) STRICT")
    insert = MultiRowStatement("INSERT INTO t(a, b, c) VALUES", 3, "ON CONFLICT(b) DO NOTHING RETURNING a")
    rows = [(number, f"b{number}", bytearray(b"c")) for number in range(count)]
    assert [row[0] for row in insert.execute(db, rows)] == list(range(count))
    assert insert.execute(db, rows) == []
    assert db.execute("SELECT count(*), max(a), max(c) FROM t").fetchone() == (
        (count, count - 1, b"c") if count else (0, None, None)
    )


def test_one_row_that_is_refused_refuses_its_statement() -> None:
    db = sqlite3.connect(":memory:")
    db.execute("CREATE TABLE t(a INTEGER PRIMARY KEY) STRICT")
    with pytest.raises(sqlite3.IntegrityError):
        MultiRowStatement("INSERT INTO t VALUES", 1).execute(db, [(1,), (1,)])
    assert db.execute("SELECT count(*) FROM t").fetchone() == (0,)
