"""Taking: an envelope from another machine is acted on once, whatever is repeated or fails."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from rappd.errors import StoreError
from rappd.store import transactions, write_operations
from rappd.store.connections import open_writing
from rappd.store.inbox_table import InboxTable
from rappd.store.records import Record
from rappd.store.store import Store
from rappd.store.verify import verify
from rappd.store.write_operations import CLAIM_STATE, ClaimState, InboxClaim

A, B = "aaaaaaaa-0000-4000-8000-000000000001", "bbbbbbbb-0000-4000-8000-000000000002"
PEER = "twin_0123456789abcdef"


@pytest.fixture
def taking(say, about):
    def make(id: str, thread: str = A, *, state: Any = "started", **other: Any) -> InboxClaim:
        values = {"sender": PEER, "verb": "HELP", "workspace": "brainstem", "body": b"", "at": 7, **other}
        asked = say(thread, f"asked {id}", sender=values["sender"], id=id)
        return InboxClaim(
            id=id, thread=thread, state=state, records=[about(thread), asked], **values
        )  # fmt: skip

    return make


def _reply(say, id: str, thread: str = A) -> Record:
    return say(thread, f"answer to {id}", verb="DONE", sender="desk_4f2a", recipient=PEER, id=id)


async def test_new_claim_is_kept_and_repeat_gets_its_state(store, say, taking):
    inbox = InboxTable(store)
    assert await inbox.claim(taking("1")) is None
    assert await inbox.claim(taking("1", B)) == ClaimState("started", A)
    assert await store.commit_reply(_reply(say, "1"), PEER, "1", "HELP") == 2
    assert await inbox.claim(taking("1", B)) == ClaimState("done", A) == await inbox.find(PEER, "1", "HELP")
    assert [row.id for row in await store.threads()] == [A]
    assert [event.verb for event in await store.thread_events(A)] == ["HELP", "DONE"]
    assert b"answer to 1" in await store.answer_to(PEER, "1")


async def test_repeats_in_one_batch_are_written_once(store, path: Path, say, taking) -> None:
    futures = [store.claim(taking(str(turn % 10))) for turn in range(100)]
    taken = await asyncio.gather(*futures)
    assert taken == [None] * 10 + [ClaimState("started", A)] * 90
    answered = [store.commit_reply(_reply(say, "3"), PEER, "3", "HELP"), store.claim(taking("3"))]
    assert await asyncio.gather(*answered) == [11, ClaimState("done", A)]
    assert (await store.counts()).events == 11
    assert verify(path).whole


async def test_the_name_is_sender_id_and_verb_together(store, taking) -> None:
    first = [taking("1"), taking("2"), taking("1", verb="CANCEL"), taking("1", sender="other_ffff")]
    assert await asyncio.gather(*map(store.claim, first)) == [None] * 4


async def test_a_repeat_after_a_restart(path: Path, say, taking) -> None:
    store = await Store.open(path)
    await store.claim(taking("1"))
    await store.claim(taking("2", B))
    await store.commit_reply(_reply(say, "1"), PEER, "1", "HELP")
    await store.close()
    store = await Store.open(path)
    assert await store.claim(taking("1")) == ClaimState("done", A)
    assert await store.claim(taking("2")) == ClaimState("started", B)
    assert [row.id for row in await InboxTable(store).unfinished()] == ["2"]
    await store.close()
    assert verify(path).events == 3


async def test_an_accepted_one_is_begun_once_and_then_done(store, say, taking) -> None:
    inbox = InboxTable(store)
    assert await inbox.claim(taking("1", state="accepted", body=b"the envelope")) is None
    (row,) = await inbox.unfinished()
    assert row == (PEER, "1", "HELP", "accepted", "brainstem", A, True, b"the envelope", 7)
    began = [store.start_claimed(PEER, "1", "HELP", [say(A, "begun", sender=PEER)]) for _ in range(3)]
    assert await asyncio.gather(*began) == [True, False, False]
    assert (await store.counts()).events == 2
    (row,) = await inbox.unfinished()
    assert (row.state, row.body) == ("started", b"the envelope")
    await store.commit_reply(_reply(say, "1"), PEER, "1", "HELP")
    assert await inbox.unfinished() == []
    assert not await store.start_claimed(PEER, "1", "HELP", [])
    assert not await store.start_claimed(PEER, "nobody's", "HELP", [say(A)])
    assert (await store.counts()).events == 3


async def test_of_a_done_one_the_record_alone_remains(store, path: Path, say, taking) -> None:
    await store.claim(taking("1"))
    await store.commit_reply(_reply(say, "1"), PEER, "1", "HELP")
    db = sqlite3.connect(path)
    assert db.execute("SELECT count(*) FROM inbox").fetchone() == (0,)
    db.close()
    inbox = InboxTable(store)
    for other in (taking("1", verb="CANCEL"), taking("1", sender="other_ffff")):
        assert await inbox.find(other.sender, "1", other.verb) is None
        assert await inbox.claim(other) is None
    assert await inbox.find(PEER, "1", "HELP") == ClaimState("done", A)


@pytest.mark.parametrize(("statement", "values"), [(CLAIM_STATE, 3), (write_operations._CLAIM_ONE, 8)])
def test_what_was_answered_is_found_by_an_index(path: Path, statement: str, values: int) -> None:
    with contextlib.closing(open_writing(path)) as db:
        plan = " ".join(row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {statement}", ("x",) * values))
    assert "SEARCH answer USING INDEX answers (recipient=? AND id=?)" in plan
    assert "SEARCH asked USING INDEX events_of_thread (thread=?)" in plan
    assert "SCAN inbox" not in plan


@pytest.mark.parametrize(
    ("statement", "values"),
    [
        (write_operations._CLAIM_ONE, 8), (write_operations._DONE_ONE, 3), (transactions._FIND._statements[1], 1),
        (transactions._ADVANCE._statements[1], 4), (transactions._DESCRIBE._statements[1], 12),
    ],
)  # fmt: skip
def test_what_comes_alone_sets_up_no_temporary_database(path: Path, statement: str, values: int) -> None:
    with contextlib.closing(open_writing(path)) as db:
        steps = [row[1] for row in db.execute(f"EXPLAIN {statement}", ("x",) * values)]
    assert "OpenEphemeral" not in steps
    assert "OpenAutoindex" not in steps


async def test_unfinished_claims_come_in_order_with_envelope(store, say, taking):
    for number in range(30, 0, -1):
        await store.claim(taking(str(number), at=100 - number, thread=(A, B)[number % 2]))
    for number in (28, 3):
        await store.commit_reply(_reply(say, str(number)), PEER, str(number), "HELP")
    rows = await InboxTable(store).unfinished()
    assert [int(row.id) for row in rows] == [n for n in range(30, 0, -1) if n not in (28, 3)]
    for row in rows:
        assert b'"asked %s"' % row.id.encode() in row.body


async def test_unanswered_claims_are_forgotten_by_age(store, say, taking, monkeypatch) -> None:
    monkeypatch.setattr("rappd.store.inbox_table.FORGOTTEN_AT_ONCE", 3)
    inbox = InboxTable(store)
    for number in range(20):
        state = "started" if number in (4, 5) else "done"
        await inbox.claim(taking(str(number), at=number, state=state))
    await store.commit_reply(_reply(say, "5"), PEER, "5", "HELP")
    assert await inbox.forget_before(10) == 8
    assert await inbox.find(PEER, "3", "HELP") is None
    assert await inbox.find(PEER, "4", "HELP") == ClaimState("started", A)
    assert await inbox.find(PEER, "5", "HELP") == ClaimState("done", A)
    assert await inbox.find(PEER, "10", "HELP") == ClaimState("done", A)
    assert await inbox.claim(taking("3")) is None
    assert (await store.counts()).events == 20 + 1 + 1  # the record itself is never shortened


async def test_one_that_cannot_be_written_spoils_only_itself(store, path: Path, say, taking) -> None:
    spoilt = taking("2")
    spoilt.records.append(Record(A, "HELP", PEER, "desk", "\udc80", b"{}", 1))
    futures = [store.claim(taking("1")), store.claim(spoilt), store.claim(taking("3", B))]
    results = await asyncio.gather(*futures, return_exceptions=True)
    assert results[0] is None and results[2] is None
    assert isinstance(results[1], StoreError)
    assert {row.id for row in await InboxTable(store).unfinished()} == {"1", "3"}
    assert await store.claim(taking("2")) is None
    assert [event.id for event in await store.thread_events(A)] == ["1", "2"]
    assert verify(path).problems == []


async def test_a_reply_that_cannot_be_written_leaves_it_started(store, path: Path, say, taking) -> None:
    await store.claim(taking("1"))
    with pytest.raises(StoreError):
        await store.commit_reply(Record(A, "DONE", "desk", PEER, "\udc80", b"{}", 1), PEER, "1", "HELP")
    assert await store.claim(taking("1")) == ClaimState("started", A)
    await store.commit_reply(_reply(say, "1"), PEER, "1", "HELP")
    assert await store.claim(taking("1")) == ClaimState("done", A)
    assert verify(path).whole


async def test_turns_takings_and_replies_mix_in_order(store, path: Path, say, taking) -> None:
    waiting: list[asyncio.Future[Any]] = []
    for turn in range(200):
        store.queue(say(B, f"question {turn}"))
        waiting.append(store.claim(taking(str(turn))))
        waiting.append(store.commit(say(B, f"answer {turn}", verb="DONE"), strict=turn % 3 == 0))
        waiting.append(store.commit_reply(_reply(say, str(turn)), PEER, str(turn), "HELP"))
    results = await asyncio.gather(*waiting)
    assert results == [x for turn in range(200) for x in (None, 4 * turn + 3, 4 * turn + 4)]
    events = await store.recent_events(4)
    assert [(event.thread, event.verb) for event in events] == [
        (B, "HELP"), (A, "HELP"), (B, "DONE"), (A, "DONE")
    ]  # fmt: skip
    assert verify(path).whole


async def test_a_cancelled_wait_takes_nothing_back(store, taking) -> None:
    store.claim(taking("1")).cancel()
    assert await store.claim(taking("1")) == ClaimState("started", A)


async def test_cancelled_task_learns_its_write_result_first(store, taking) -> None:
    told: list[Any] = []

    async def take() -> None:
        writing = store.claim(taking("1"))
        try:
            await writing
        finally:
            told.append(writing.result())

    for outcome in (None, ClaimState("started", A)):
        task = asyncio.create_task(take())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert told.pop() == outcome


async def test_closing_writes_what_was_taken(path: Path, say, taking) -> None:
    store = await Store.open(path)
    futures = [store.claim(taking("1")), store.commit_reply(_reply(say, "1"), PEER, "1", "HELP")]
    await store.close()
    assert await asyncio.gather(*futures) == [None, 2]


async def test_readers_see_row_and_record_together(store, path: Path, say, taking) -> None:
    """A reader's snapshot never holds one without the other while both are written."""
    stop = asyncio.Event()

    def look() -> tuple[int, int, int]:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        try:
            return db.execute(
                """SELECT (SELECT count(*) FROM inbox), (SELECT count(*) FROM events WHERE verb = 'HELP'),
                (SELECT count(*) FROM events WHERE verb = 'DONE')"""
            ).fetchone()
        finally:
            db.close()

    async def watch() -> int:
        looks = 0
        while not stop.is_set() or not looks:
            unfinished, asked, answered = await asyncio.to_thread(look)
            assert unfinished == asked - answered
            looks += 1
        return looks

    async def converse(start: int) -> None:
        for number in range(start, start + 40):
            await store.claim(taking(str(number)))
            await store.commit_reply(_reply(say, str(number)), PEER, str(number), "HELP")

    watchers = [asyncio.create_task(watch()) for _ in range(3)]
    await asyncio.gather(*(converse(100 * one) for one in range(8)))
    stop.set()
    assert min(await asyncio.gather(*watchers)) > 0
    await store.flush()
    assert look() == (0, 320, 320)
