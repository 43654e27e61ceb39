"""Reading: threads by page and prefix, events, answers; with the daemon up, down or killed."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from rappd.errors import AmbiguousError, NotFoundError, StoreError
from rappd.store import reader, transactions
from rappd.store.reader import Reader
from rappd.store.records import Event
from rappd.store.store import Store

A = "7c1e0000-0000-4000-8000-00000000000a"
B = "7c880000-0000-4000-8000-00000000000b"
C = "f00d0000-0000-4000-8000-00000000000c"


@pytest.fixture
async def filled(store: Store, say) -> Store:
    for at, thread in enumerate((A, B, C, A), start=1):
        await store.commit(say(thread, at=at * 10))
    return store


async def test_threads_come_latest_first_page_by_page(filled: Store) -> None:
    assert [row.id for row in await filled.threads()] == [A, C, B]
    first = await filled.threads(2)
    rest = await filled.threads(2, before=first[-1].cursor)
    assert [row.id for row in (*first, *rest)] == [A, C, B]


async def test_a_thread_is_looked_up_by_the_end_of_its_id(filled: Store, path: Path) -> None:
    """Ids end with their thread's moment: what the writer looks up and writes lies together."""
    await filled.flush()
    with contextlib.closing(sqlite3.connect(path)) as db:
        for statement in (
            transactions._FIND._statements[1],
            transactions._FIND._statements[2],
            f"{reader._THREAD} {reader._IS}",
            f"{reader._EVENT} {reader._OF} AND n > 1",
        ):
            plan = [
                row[3]
                for row in db.execute(
                    f"EXPLAIN QUERY PLAN {statement}", ("x",) * statement.count("(?)") or ("x",)
                )
            ]
            assert any("INDEX threads_by_end (<expr>=? AND id=?)" in step for step in plan), plan
            assert not any(step.startswith("SCAN threads") for step in plan), plan
        with pytest.raises(sqlite3.IntegrityError):
            db.execute(
                "INSERT INTO threads SELECT 99, id, '', '', NULL, '', 1, 1, 1, x'', NULL, NULL FROM threads"
            )


async def test_threads_of_one_moment_are_listed_once(store: Store, say) -> None:
    ids = [f"{n:08x}-0000-4000-8000-000000000000" for n in range(7)]
    for thread in ids:
        await store.commit(say(thread, at=5))
    seen: list[str] = []
    before = None
    while page := await store.threads(3, before):
        seen += [row.id for row in page]
        before = page[-1].cursor
    assert seen == sorted(ids, reverse=True)


@pytest.mark.parametrize(
    "prefix", ["7c1e", "7C1E", " 7c1e0 ", A, "7c1e00000", "7c1e0000-0000-4", "7c1e00000000400080000000"]
)
async def test_a_thread_is_found_by_its_first_characters(filled: Store, prefix: str) -> None:
    assert (await filled.find_thread(prefix)).id == A
    assert [event.n for event in await filled.thread_events(prefix)] == [1, 2]


async def test_an_ambiguous_start_names_the_candidates(filled: Store) -> None:
    with pytest.raises(AmbiguousError) as caught:
        await filled.thread_events("7c")
    assert A in str(caught.value)
    assert B in str(caught.value)
    assert caught.value.exit_code == 2
    assert caught.value.do


@pytest.mark.parametrize(
    "prefix", ["abc", "", "%", "7c1e%", "\U0010ffff", "7c1e0000-0000-4000-8000-00000000000a1"]
)
async def test_what_no_thread_begins_with_is_not_found(filled: Store, prefix: str) -> None:
    with pytest.raises(NotFoundError) as caught:
        await filled.find_thread(prefix)
    assert caught.value.exit_code == 4


async def test_a_thread_can_be_read_from_an_event_on_or_at_its_end(store: Store, say) -> None:
    for _ in range(10):
        await store.commit(say(A))
    assert [event.n for event in await store.thread_events(A, after=7)] == [8, 9, 10]
    assert [event.n for event in await store.thread_events(A, last=2)] == [9, 10]
    assert await store.thread_events(A, after=10) == []


async def test_recent_events_and_what_came_after_them(filled: Store, say) -> None:
    assert [event.seq for event in await filled.recent_events(3)] == [2, 3, 4]
    assert [(event.seq, event.thread) for event in await filled.recent_events(2, after_seq=1)] == [
        (2, B),
        (3, C),
    ]
    await filled.commit(say(B))
    assert [event.seq for event in await filled.recent_events(after_seq=4)] == [5]
    assert await filled.recent_events(after_seq=5) == []


async def test_recent_events_with_pictures_stay_small_together(store: Store, say) -> None:
    half = "x" * (reader.RECENT_BYTES // 2)
    for text in ("first", half, "between", half, "last", half + half):
        await store.commit(say(A, text))
    assert [event.n for event in await store.recent_events(6)] == [6]
    assert [event.n for event in await store.recent_events(4, after_seq=1)] == [2, 3]
    await store.commit(say(A, "after"))
    assert [event.n for event in await store.recent_events(2)] == [7]
    await store.commit(say(A, half))
    assert [event.n for event in await store.recent_events(6)] == [7, 8]


async def test_follower_gets_the_events_of_its_thread_once_they_are_committed(store: Store, say) -> None:
    seen: asyncio.Queue[Event] = asyncio.Queue()
    store.follow(A, lambda events: [seen.put_nowait(one) for one in events])
    for thread, text in ((A, "one"), (B, "other"), (A, "two")):
        store.queue(say(thread, text))  # nobody waits for the commit
    told = [await asyncio.wait_for(seen.get(), 100) for _ in range(2)]
    assert told == await store.thread_events(A)
    await store.commit(say(B))
    assert seen.empty()


async def test_only_a_marked_reply_answers_a_turn(store: Store, say) -> None:
    turn = "11111111-0000-4000-8000-000000000001"
    await store.commit(say(A, "asked", id=turn))
    await store.commit(say(A, "unmarked", verb="DONE", sender="desk", recipient="guid", id=turn))
    assert await store.answer_to("guid", turn) is None
    marked = say(A, "marked", verb="DONE", sender="desk", recipient="guid", id=turn, answers=True)
    await store.commit(marked)
    assert await store.answer_to("guid", turn) == marked.body
    assert await store.answer_to("somebody else", turn) is None
    assert await store.answer_to("guid", turn[:-1]) is None


async def test_an_answer_is_looked_up_by_index(filled: Store, path: Path) -> None:
    db = sqlite3.connect(path)
    plan = db.execute(
        "EXPLAIN QUERY PLAN SELECT body FROM events WHERE answers = 1 AND recipient = 'a' AND id = 'b'"
    ).fetchall()
    db.close()
    assert "USING INDEX answers" in plan[0][3]


async def test_counts(filled: Store) -> None:
    assert await filled.counts() == (3, 4)


async def test_reading_with_the_daemon_down(path: Path, say) -> None:
    store = await Store.open(path)
    await store.commit(say(A))
    await store.close()
    with Reader(path) as reader:
        assert reader.counts() == (1, 1)
        assert [row.id for row in reader.threads()] == [A]
        assert len(reader.thread_events("7c1e")) == 1


async def test_a_reader_cannot_write(store: Store, path: Path, say) -> None:
    await store.commit(say(A))
    with Reader(path) as reader, pytest.raises(sqlite3.OperationalError, match="readonly"):
        reader._db.execute("INSERT INTO threads SELECT * FROM threads")


def test_reading_where_nothing_was_ever_recorded(path: Path) -> None:
    with Reader(path) as reader:
        assert reader.counts() == (0, 0)
        assert reader.threads() == []
        with pytest.raises(NotFoundError):
            reader.find_thread("7c1e")
    assert not path.exists()


@pytest.mark.parametrize(
    "content", [b"not a database, by no means. " * 200, b"SQLite format 3\0" + b"\xff" * 5000]
)
async def test_a_file_that_is_no_store_is_named(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(StoreError, match=r"rappd\.db") as caught:
        Reader(path)
    assert caught.value.do
    with pytest.raises(StoreError, match=r"rappd\.db"):
        await Store.open(path)
    assert path.read_bytes() == content


_READER = """
import sys
from pathlib import Path
from rappd.store import reader, transactions
from rappd.store.reader import Reader
last = 0
print("ready", flush=True)
with Reader(Path(sys.argv[1])) as reader:
    while True:
        events = reader.recent_events(500, after_seq=last)
        if events:
            assert [event.seq for event in events] == list(range(last + 1, last + 1 + len(events)))
            last = events[-1].seq
            if b"the end" in events[-1].body:
                break
        thread = reader.threads(1)
        if thread:
            assert len(reader.thread_events(thread[0].id)) >= thread[0].count
print(last)
"""


async def test_two_processes_read_while_the_daemon_writes(store: Store, path: Path, say) -> None:
    readers = [
        subprocess.Popen([sys.executable, "-c", _READER, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        for reader in readers:
            assert reader.stdout
            assert reader.stdout.readline() == "ready\n"
        for turn in range(400):
            store.queue(say((A, B, C)[turn % 3]))
            await store.commit(say((A, B, C)[turn % 3]))
        await store.commit(say(A, "the end"))
        for reader in readers:
            assert reader.communicate(timeout=100)[0] == "801\n"
            assert reader.returncode == 0
    finally:
        for reader in readers:
            reader.kill()
            reader.wait()
