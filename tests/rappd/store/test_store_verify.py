"""Verifying: whatever is done to the file behind the store's back is found and named."""

from __future__ import annotations

import asyncio
import itertools
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from envelopes.codecs.emergence import encode
from envelopes.envelope import PARENT, THREAD, Envelope
from rappd.store import verify as verifying
from rappd.store.reader import Reader
from rappd.store.records import Record
from rappd.store.store import Store
from rappd.store.verify import verify

A = "aaaaaaaa-0000-4000-8000-000000000001"
B = "bbbbbbbb-0000-4000-8000-000000000002"
C = "cccccccc-0000-4000-8000-000000000003"


@pytest.fixture
async def filled(path: Path, say, about) -> Path:
    """Three threads, A with 5 events (seq 1, 4, 7, 10, 13), B and C likewise."""
    store = await Store.open(path)
    for thread in (A, B, C):
        store.thread(about(thread))
    for turn in range(5):
        for thread in (A, B, C):
            await store.commit(say(thread, f"turn {turn}"))
    await store.close()
    return path


def test_an_untouched_record_is_whole(filled: Path) -> None:
    report = verify(filled)
    assert report.whole
    assert (report.events, report.threads, report.found, report.problems) == (15, 3, 0, [])


_AT = "thread = 1 AND n = 3"  # the third event of A, seq 7
_SWAP = "CASE n WHEN 2 THEN 3 ELSE 2 END"


@pytest.mark.parametrize(
    ("statements", "found"),
    [
        ([f"UPDATE events SET body = CAST(replace(body, 'turn', 'burn') AS BLOB) WHERE {_AT}"], [(A, 3, "changed")]),
        ([f"UPDATE events SET body = CAST(body || ' ' AS BLOB) WHERE {_AT}"], [(A, 3, "changed")]),
        ([f"UPDATE events SET at = at + 1 WHERE {_AT}"], [(A, 3, "changed")]),
        ([f"UPDATE events SET at = -1 WHERE {_AT}"], [(A, 3, "changed")]),
        ([f"UPDATE events SET prev = zeroblob(32) WHERE {_AT}"], [(A, 3, "follow"), (A, 3, "changed")]),
        ([f"UPDATE events SET prev = x'' WHERE {_AT}"], [(A, 3, "follow"), (A, 3, "changed")]),
        ([f"UPDATE events SET hash = zeroblob(32) WHERE {_AT}"], [(A, 3, "changed"), (A, 4, "follow")]),
        ([f"UPDATE events SET sender = 'mallory' WHERE {_AT}"], [(A, 3, "columns")]),
        ([f"UPDATE events SET recipient = 'mallory' WHERE {_AT}"], [(A, 3, "columns")]),
        ([f"UPDATE events SET verb = 'DONE' WHERE {_AT}"], [(A, 3, "columns")]),
        ([f"UPDATE events SET id = 'x' WHERE {_AT}"], [(A, 3, "columns")]),
        ([f"DELETE FROM events WHERE {_AT}"], [(A, 4, "event 3 is missing")]),
        (["DELETE FROM events WHERE thread = 1 AND n IN (2, 3)"], [(A, 4, "events 2 to 3 are missing")]),
        (["DELETE FROM events WHERE thread = 1 AND n = 1"], [(A, 2, "event 1 is missing")]),
        (["DELETE FROM events WHERE thread = 1 AND n = 5"], [(A, 0, "should have 5 events and ends with 4")]),
        (["DELETE FROM events WHERE thread = 1"], [(A, 0, "should have 5 events and ends with 0")]),
        (
            [f"DELETE FROM events WHERE {_AT}", "UPDATE events SET n = n - 1 WHERE thread = 1 AND n > 3"],
            [(A, 3, "follow"), (A, 0, "should have 5 events and ends with 4")],
        ),
        (
            ["DELETE FROM events WHERE thread = 2", "DELETE FROM threads WHERE number = 2"],
            [("", 0, "5 events are gone with all of their thread")],
        ),
        (["DELETE FROM threads WHERE number = 2"], [("number 2", 0, "not listed")]),
        (["UPDATE threads SET count = 4 WHERE number = 1"], [(A, 0, "should have 4 events and has 5")]),
        (["UPDATE threads SET count = 6 WHERE number = 1"], [(A, 0, "should have 6 events and ends with 5")]),
        (["UPDATE threads SET head = zeroblob(32) WHERE number = 1"], [(A, 0, "head")]),
        (
            # Put in at the end, with any bytes for hashes.
            ["INSERT INTO events SELECT 16, thread, 6, at, verb, sender, recipient, id, body, 0, hash, prev, parent"
             " FROM events WHERE thread = 1 AND n = 5"],
            [(A, 6, "changed"), (A, 0, "should have 5 events and has 6")],
        ),
        (
            # Put in between, numbered like an event that is there.
            ["DROP INDEX events_of_thread",
             "INSERT INTO events SELECT 16, thread, n, at, verb, sender, recipient, id, body, 0, prev, hash, parent"
             f" FROM events WHERE {_AT}"],
            [(A, 3, "stands after event 5")],
        ),
        (
            # Two events of a thread change places.
            ["UPDATE events SET seq = CASE seq WHEN 4 THEN -7 ELSE -4 END WHERE seq IN (4, 7)",
             "UPDATE events SET seq = -seq WHERE seq < 0"],
            [(A, 3, "event 2 is missing"), (A, 2, "stands after")],
        ),
        (
            # And so do their numbers.
            ["UPDATE events SET n = -n WHERE thread = 1 AND n IN (2, 3)",
             f"UPDATE events SET n = {_SWAP} WHERE n < 0".replace("CASE n", "CASE -n")],
            [(A, 3, "event 2 is missing"), (A, 2, "stands after"), (A, 4, "follow")],
        ),
        (
            # An event moves to another thread.
            ["UPDATE events SET thread = 2, n = 6 WHERE thread = 3 AND n = 5"],
            [(B, 6, "follow"), (C, 0, "ends with 4"), (B, 0, "has 6")],
        ),
    ],
)  # fmt: skip
def test_tampering_is_found_and_named(filled: Path, tamper, statements, found) -> None:
    tamper(*statements)
    report = verify(filled)
    for thread, n, what in found:
        assert any((p.thread, p.n) == (thread, n) and what in p.what for p in report.problems), (
            report.problems
        )
    assert report.found == len(report.problems) == len(found), report.problems
    assert not report.whole


@pytest.mark.parametrize(
    "change",
    ["parent = NULL WHERE seq = 3", "parent = 'other' WHERE seq = 3", "parent = 'asked' WHERE seq = 2"],
)
async def test_parent_that_is_not_in_the_body_is_found(path: Path, about, tamper, change: str) -> None:
    store = await Store.open(path)
    store.thread(about(A))
    extensions: dict[str, dict[str, str]] = {"asked": {}, "aside": {}, "call": {PARENT: "asked"}}
    for id, more in extensions.items():
        data = {"text": f'it says "{PARENT}":"asked"'}  # as text, it is none
        body = encode(Envelope(id, "ada", "desk", "HELP", data, {**more, THREAD: A}))
        await store.commit(Record(A, "HELP", "ada", "desk", id, body, 1, parent=more.get(PARENT)))
    await store.close()
    with Reader(path) as reader:
        assert [one.parent for one in reader.thread_events(A)] == [None, None, "asked"]
    assert verify(path).whole
    tamper(f"UPDATE events SET {change}")
    assert [problem.what for problem in verify(path).problems] == ["its columns differ from its envelope"]


def test_a_problem_reads_as_a_sentence_and_as_json(filled: Path, tamper) -> None:
    tamper(f"UPDATE events SET at = at + 1 WHERE {_AT}")
    report = verify(filled)
    assert str(report.problems[0]) == f"thread {A}, event 3: its text, time or hash was changed"
    shown = report.as_json()
    assert (shown["events"], shown["found"], shown["problems"][0]["n"]) == (15, 1, 3)


def test_a_long_list_of_problems_is_counted_not_listed(filled: Path, tamper, monkeypatch) -> None:
    monkeypatch.setattr(verifying, "LISTED", 4)
    tamper("UPDATE events SET at = at + 1")
    report = verify(filled)
    assert (report.found, len(report.problems)) == (15, 4)


def test_problems_are_found_across_chunks_and_progress_is_told(filled: Path, tamper, monkeypatch) -> None:
    monkeypatch.setattr(verifying, "CHUNK", 4)
    told: list[tuple[int, int]] = []
    assert verify(filled, lambda done, of: told.append((done, of))).whole
    assert told[0] == (4, 15)
    assert told[-1] == (15, 15)
    tamper(f"DELETE FROM events WHERE {_AT}")
    assert [(p.thread, p.n) for p in verify(filled).problems] == [(A, 4)]


async def test_names_that_json_escapes_are_no_contradiction(store: Store, path: Path) -> None:
    spaced = b'{ "from": "a\\"b", "to": "c", "verb":"HELP", "id": "1", "data": {}}'
    await store.commit(Record(A, "HELP", 'a"b', "c", "1", spaced, 1))
    await store.commit(Record(A, "HELP", "anyone", "c", "1", b"not an envelope", 1))
    assert verify(path).whole


async def test_a_live_record_is_verified_while_it_grows(store: Store, path: Path, say, monkeypatch) -> None:
    monkeypatch.setattr(verifying, "CHUNK", 50)

    async def talk(thread: str) -> None:
        while not done.is_set():
            store.queue(say(thread))
            await store.commit(say(thread, verb="DONE"))

    done = asyncio.Event()
    talking = [asyncio.create_task(talk(thread)) for thread in (A, B, C)]
    sizes = []
    while len(sizes) < 8 or sizes[-1] < 500:
        report = await asyncio.to_thread(verify, path)
        assert report.problems == []
        sizes.append(report.events)
    done.set()
    await asyncio.gather(*talking)
    assert sizes == sorted(sizes)


def test_a_file_that_breaks_off_is_reported(filled: Path) -> None:
    whole = filled.read_bytes()
    db = sqlite3.connect(filled)
    page = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'events'").fetchone()[0]
    db.close()
    damaged = bytearray(whole)
    damaged[(page - 1) * 4096 : page * 4096] = b"\xa5" * 4096
    filled.write_bytes(damaged)
    report = verify(filled)
    assert not report.whole
    assert report.problems[0].what.startswith("event 1 of the log cannot be read, nor any after it: ")


def test_an_empty_home_has_nothing_wrong(path: Path) -> None:
    report = verify(path)
    assert (report.events, report.threads, report.whole) == (0, 0, True)


_COLUMNS = {
    "seq": "seq + 100",
    "thread": "thread % 3 + 1",
    "n": "n + 100",
    "at": "at + 1",
    "body": "CAST('x' || body AS BLOB)",
    "prev": "randomblob(32)",
    "hash": "randomblob(32)",
    "sender": "sender || 'x'",
    "recipient": "recipient || 'x'",
    "verb": "'DONE'",
    "id": "'x'",
}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(1, 15), st.sampled_from([*_COLUMNS, "delete", "swap"]), st.integers(1, 14))
def test_any_single_change_is_found(filled: Path, seq: int, what: str, step: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "rappd.db"
        shutil.copy(filled, copy)
        db = sqlite3.connect(copy, isolation_level=None)
        for name in ("events_are_kept", "events_stay_as_written"):
            db.execute(f"DROP TRIGGER {name}")
        db.execute("DROP INDEX events_of_thread")
        if what == "delete":
            db.execute("DELETE FROM events WHERE seq = ?", (seq,))
        elif what == "swap":  # the contents of two events
            other = (seq + step - 1) % 15 + 1
            one, two = (
                db.execute("SELECT body, at FROM events WHERE seq = ?", (number,)).fetchone()
                for number in (seq, other)
            )
            for number, (body, at) in ((seq, two), (other, one)):
                db.execute("UPDATE events SET body = ?, at = ? WHERE seq = ?", (body, at, number))
        else:
            db.execute(f"UPDATE events SET {what} = {_COLUMNS[what]} WHERE seq = ?", (seq,))
        db.close()
        report = verify(copy)
        assert not report.whole


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.binary(max_size=60), st.booleans()), max_size=40))
def test_any_mix_of_threads_and_bodies_verifies(turns: list[tuple[int, bytes, bool]]) -> None:
    async def run(path: Path) -> None:
        store = await Store.open(path)
        for at, (thread, body, wait) in enumerate(turns):
            record = Record(f"thread-{thread}", "HELP", "a", "b", str(at), body, at)
            if wait:
                await store.commit(record)
            else:
                store.queue(record)
        await store.close()

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rappd.db"
        asyncio.run(run(path))
        report = verify(path)
        threads = {thread for thread, _, _ in turns}
        assert (report.events, report.threads, report.problems) == (len(turns), len(threads), [])
        db = sqlite3.connect(path)
        rows = db.execute(
            "SELECT threads.id, n, body FROM events JOIN threads ON number = thread ORDER BY seq"
        )
        count = {thread: itertools.count(1) for thread in threads}
        assert rows.fetchall() == [(f"thread-{t}", next(count[t]), body) for t, body, _ in turns]
        db.close()
