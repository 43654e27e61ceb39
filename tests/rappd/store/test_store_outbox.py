"""The outbox's rows behave as the plain model of them does, with the file closed and opened in between."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from neighborhoods.durable_tables import (
    OUTBOX_TRANSITIONS,
    WAITING,
    OutboxState,
    OutboxStorage,
    OutgoingEnvelope,
)
from rappd.store import outbox_table
from rappd.store.outbox_table import OutboxTable
from rappd.store.store import Store
from rappd.store.verify import verify

PEERS = ("aa", "bb")
STATES: tuple[OutboxState, ...] = (*WAITING, "done", "failed", "expired", "dropped")
IDS = ("0a000000-0000-4000-8000-000000000000", "0a000000-1111-4000-8000-000000000000", "0A plain", "0b", "%_")
moments = st.integers(0, 20)


def _item(peer: str, id: str, **other: Any) -> OutgoingEnvelope:
    values = {"number": 0, "verb": "HELP", "thread": "t", "what": "asks", "body": b"{}", "state": "queued"}
    moments = {"tries": 0, "created_at": 1, "next_at": 0, "expires_at": 1_000}
    return OutgoingEnvelope(peer=peer, id=id, **{**values, **moments, **other})


class Outboxes(RuleBasedStateMachine):
    """The model is a list of rows, in order of number."""

    @initialize()
    def open(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.runner = asyncio.Runner()
        self.model: list[OutgoingEnvelope] = []
        self._open()

    def _open(self) -> None:
        self.store = self.runner.run(Store.open(Path(self.folder.name) / "rappd.db"))
        self.outbox: OutboxStorage = OutboxTable(self.store)

    def teardown(self) -> None:
        self.runner.run(self.store.close())
        self.runner.close()
        self.folder.cleanup()

    def waiting(self) -> list[OutgoingEnvelope]:
        return [row for row in self.model if row.state in WAITING]

    def change(self, row: OutgoingEnvelope, **values: Any) -> None:
        self.model[self.model.index(row)] = msgspec.structs.replace(row, **values)

    @rule()
    def restart(self) -> None:
        self.runner.run(self.store.close())
        self._open()

    @rule(
        peer=st.sampled_from(PEERS),
        ids=st.lists(st.sampled_from(IDS), min_size=1, max_size=6),
        verb=st.sampled_from(("HELP", "CANCEL")),
        next_at=moments,
        expires_at=moments,
        state=st.sampled_from(STATES),
        body=st.binary(max_size=5),
        what=st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
    )
    def put(self, peer: str, ids: list[str], **values: Any) -> None:
        async def together() -> list[int]:
            items = [_item(peer, id, number=99, tries=tries, **values) for tries, id in enumerate(ids)]
            return await asyncio.gather(*map(self.outbox.put, items))

        for tries, (id, number) in enumerate(zip(ids, self.runner.run(together()), strict=True)):
            key = (peer, id, values["verb"])
            known = [row for row in self.model if (row.peer, row.id, row.verb) == key]
            if known:
                assert number == known[0].number
            else:
                assert number > max((row.number for row in self.model), default=0)
                self.model.append(_item(peer, id, number=number, tries=tries, **values))

    @rule(
        picked=st.lists(st.integers(0, 8), max_size=6),
        state=st.sampled_from(STATES),
        tries=st.none() | st.integers(0, 9),
        next_at=st.none() | moments,
        answer=st.binary(max_size=3),
        trouble=st.sampled_from(("", "away")),
    )
    def move(self, picked: list[int], state: OutboxState, tries: Any, next_at: Any, **rest: Any) -> None:
        picked = [self.model[n % len(self.model)].number if self.model else n for n in picked] + [9_999]
        self.runner.run(self.outbox.move(picked, state, tries=tries, next_at=next_at, **rest))
        for row in self.waiting():
            if row.number in picked:
                values = {"tries": tries, "next_at": next_at}
                told = {name: value for name, value in values.items() if value is not None}
                self.change(row, state=state, **told, **rest)

    @rule(at=moments)
    def expire(self, at: int) -> None:
        over = [row.number for row in self.waiting() if row.expires_at <= at]
        for row in self.waiting():
            if row.number in over:
                self.change(row, state="expired")
        told = self.runner.run(self.outbox.expire(at))
        assert told == [row for row in self.model if row.number in over]

    @rule(at=moments)
    def forget(self, at: int) -> None:
        kept = [row for row in self.model if row.state in WAITING or row.expires_at >= at]
        outbox = OutboxTable(self.store)
        assert self.runner.run(outbox.forget_before(at)) == len(self.model) - len(kept)
        self.model = kept

    @rule(
        peer=st.sampled_from((*PEERS, "stranger")),
        id=st.sampled_from(IDS),
        at=moments,
        most=st.integers(0, 4),
        length=st.integers(0, 20),
    )
    def look(self, peer: str, id: str, at: int, most: int, length: int) -> None:
        ask, outbox = self.runner.run, self.outbox
        mine = [row for row in self.model if row.peer == peer]
        to_send = [row for row in mine if row.state in ("queued", "delivered")]
        assert (
            ask(outbox.due(peer, at, most))
            == [row for row in to_send if row.next_at <= at < row.expires_at][:most]
        )
        assert ask(outbox.outgoing(peer=peer, most=most)) == mine[:most]
        waiting = [row for row in mine if row.state in WAITING]
        assert ask(outbox.outgoing(waiting=True, peer=peer, most=most)) == waiting[:most]
        assert ask(outbox.outgoing(waiting=True)) == self.waiting()
        assert ask(outbox.by_id(peer, id)) == next((row for row in mine if row.id == id), None)
        typed = id[:length]
        found = ask(outbox.find_outgoing(typed))
        assert [row for row in found if row.id.startswith(typed)] == [
            row for row in self.model if row.id.startswith(typed)
        ]
        assert all(row.id.lower().startswith(typed.lower().strip()) for row in found)

    @invariant()
    def all_is_as_the_model_says(self) -> None:
        assert self.runner.run(self.outbox.outgoing()) == self.model
        counts = {peer: sum(row.peer == peer for row in self.waiting()) for peer in PEERS}
        expected = {peer: count for peer, count in counts.items() if count}
        assert self.runner.run(self.outbox.peers_waiting()) == expected


TestOutboxes = Outboxes.TestCase
TestOutboxes.settings = settings(
    max_examples=50, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)


@pytest.fixture
def outbox(store: Store) -> OutboxTable:
    return OutboxTable(store)


async def test_a_thousand_rows_put_and_moved_at_once(outbox, store, path: Path) -> None:
    items = [_item("aa", f"{number:04}") for number in range(1_000)]
    numbers = await asyncio.gather(*map(outbox.put, items))
    assert numbers == sorted(set(numbers))
    await outbox.move(numbers[:600], "delivered", tries=1, next_at=50)
    assert [row.number for row in await outbox.due("aa", 49, 500)] == numbers[600:]
    assert [row.number for row in await outbox.due("aa", 50, 5_000)] == numbers
    await outbox.move(numbers, "done", answer=b"DONE")
    assert await outbox.peers_waiting() == {}
    assert {row.answer for row in await outbox.outgoing()} == {b"DONE"}
    assert verify(path).whole


@pytest.mark.parametrize("ended", ["done", "failed", "expired", "dropped"])
async def test_row_that_is_over_stays_as_it_ended(outbox, ended: OutboxState) -> None:
    number = await outbox.put(_item("aa", "1"))
    await outbox.move([number], ended, answer=b"first")
    await outbox.move([number], "queued", next_at=0, trouble="away")
    await outbox.move([number], "done", answer=b"second")
    [row] = await outbox.outgoing()
    assert (row.state, row.answer, row.trouble) == (ended, b"first", "")
    assert await outbox.due("aa", 1, 10) == []


async def test_a_number_is_never_given_twice(outbox) -> None:
    first = await outbox.put(_item("aa", "1", state="done", expires_at=1))
    assert await outbox.forget_before(2) == 1
    assert await outbox.put(_item("aa", "1")) > first


async def test_eggs_and_everything_else_go_apart(outbox) -> None:
    verbs = ("HELP", "EGG", "DONE", "EGG", "CANCEL")
    numbers = [await outbox.put(_item("aa", str(at), verb=verb)) for at, verb in enumerate(verbs)]
    eggs, others = [numbers[1], numbers[3]], [numbers[0], numbers[2], numbers[4]]
    assert [row.number for row in await outbox.due("aa", 1, 10)] == others
    assert [row.number for row in await outbox.due("aa", 1, 10, eggs=True)] == eggs
    await outbox.move([eggs[0], others[0]], "done")
    for waiting in (False, True):
        for told, of_kind in ((None, sorted(numbers)), (True, eggs), (False, others)):
            expected = [one for one in of_kind if not waiting or one not in (eggs[0], others[0])]
            found = await outbox.outgoing(waiting=waiting, eggs=told, peer="aa")
            assert [row.number for row in found] == expected
    assert await outbox.peers_waiting() == {"aa": 3}


async def test_a_uuid_is_found_as_people_type_it(outbox) -> None:
    number = await outbox.put(_item("aa", IDS[1]))
    await outbox.put(_item("aa", IDS[0]))
    for typed in ("0a0000001111", "0A000000-1", " 0a000000-11"):
        assert [row.number for row in await outbox.find_outgoing(typed)] == [number]
    assert await outbox.find_outgoing("0a%") == []


async def test_readers_at_work_do_not_hold_up_the_rows(outbox) -> None:
    async def watch() -> None:
        for _ in range(60):
            rows = await outbox.outgoing(peer="aa")
            states = [row.state for row in rows]
            # rows move from the oldest on, so a reader sees done ones first
            assert states == sorted(states, key=("done", "queued").index)

    async def work() -> None:
        numbers = [await outbox.put(_item("aa", str(number))) for number in range(40)]
        for end in range(0, 40, 5):
            await outbox.move(numbers[: end + 5], "done")

    await asyncio.gather(work(), *(watch() for _ in range(4)))
    assert await outbox.outgoing(waiting=True) == []


def test_statements_of_the_store_name_the_waiting_states() -> None:
    listed = ", ".join(f"'{state}'" for state in OUTBOX_TRANSITIONS)
    statements = [
        text for text in vars(outbox_table).values() if isinstance(text, str) and "state IN" in text
    ]
    assert len(statements) >= 4
    assert all(f"state IN ({listed})" in text for text in statements)
