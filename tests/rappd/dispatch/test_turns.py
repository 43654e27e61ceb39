"""Turns: found by who asked and their id, followed by any number of callers, not stopped when one of them stops waiting."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from envelopes.envelope import DONE, HELP, PARENT, Envelope, new_id
from envelopes.events import Delta, Emit, Progress
from rappd.dispatch import turns as kept
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import RequestCancelledError, RequestContext, Turn, Turns, Work
from rappd.errors import ConflictError, StoreError
from rappd.store.store import Store

DESK = "brainstem_desk"
OWNER = Caller("loopback")
PI = Caller("federation", peer="f" * 64, caps=("HELP.*",))


def turn(id: str, work: Work, *, tells: bool = True) -> Turn:
    return Turn(Envelope(id, "ada", DESK, HELP, {}), OWNER, work, tells=tells)


async def says(turn: Turn, text: str, problem: Exception | None = None) -> Envelope:
    turn.tell(Delta(text))
    if problem is not None:
        raise problem
    return turn.envelope.reply(DONE, {"response": text})


async def over(turns: Turns, id: str, text: str = "x", problem: Exception | None = None) -> None:
    """A turn that said ``text``, and is over."""
    await turns.begin(turn(id, lambda turn: says(turn, text, problem))).over_within(None)
    await asyncio.sleep(0)  # its end is told by a callback


async def test_turn_whose_end_is_not_recorded_is_asked_anew() -> None:
    turns = Turns()
    await over(turns, "recorded")
    await over(turns, "unrecorded", problem=StoreError("full", do="make room"))
    assert turns.lately("ada", "recorded") is not None
    assert turns.lately("ada", "unrecorded") is None


@pytest.mark.parametrize(
    ("also_gone", "ends"), [(False, RequestCancelledError), (True, asyncio.CancelledError)]
)
async def test_stop_of_a_turn_stops_who_waits_for_it_only_where_that_is_stopped_too(
    also_gone: bool, ends: type[BaseException]
) -> None:
    begun = asyncio.Event()

    async def waits(turn: Turn) -> Envelope:
        begun.set()
        await asyncio.Event().wait()
        return turn.envelope

    stopped = turn("one", waits)
    asks = asyncio.create_task(stopped.reply())
    await begun.wait()
    stopped.cancel()
    if also_gone:
        asks.cancel()
    with pytest.raises(ends):
        await asks


async def test_end_of_a_turn_that_was_asked_anew_leaves_the_new_one() -> None:
    turns, go = Turns(), asyncio.Event()

    async def waits(turn: Turn) -> Envelope:
        await go.wait()
        return turn.envelope

    async def sleeps(turn: Turn) -> Envelope:
        await asyncio.sleep(60)
        return turn.envelope

    first, second = turns.begin(turn("same", waits)), turns.begin(turn("same", sleeps))
    go.set()
    await first.over_within(None)
    await asyncio.sleep(0)
    assert turns.lately("ada", "same") is second
    await turns.close()
    assert second.was_stopped


async def test_finished_turns_take_so_much_memory_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "KEEP_OCTETS", 1000)
    turns, small = Turns(), Turns(most=200)
    for id in ("first", "second", "third"):
        await over(turns, id, "x" * 400)
        await over(small, id, "x" * 400)
    assert [id for id in ("first", "second", "third") if turns.lately("ada", id)] == ["second", "third"]
    assert small.lately("ada", "third") is None


class Desk:
    """A dispatcher whose handler says half of its answer and waits for ``go``."""

    def __init__(self, store: Store) -> None:
        self.store, self.dispatcher = store, Dispatcher(store)
        self.performed, self.begun, self.go = 0, asyncio.Event(), asyncio.Event()
        self.dispatcher.route(DESK, "brainstem", self._perform)

    async def _perform(self, context: RequestContext) -> dict[str, Any]:
        self.performed += 1
        if context.emit:
            context.emit(Delta("half"))
        self.begun.set()
        await self.go.wait()
        return {"response": "half and half"}

    def ask(self, id: str, caller: Caller = OWNER, *, session: str = "s", named: bool = True) -> Turn:
        asked = Envelope(id, "ada", DESK, HELP, {"user_input": "hello"})
        return self.dispatcher.submit(asked, caller, session=session, named=named)

    async def bodies(self) -> list[dict[str, Any]]:
        await self.store.flush()
        (thread,) = await self.store.threads()
        return [orjson.loads(one.body) for one in await self.store.thread_events(thread.id)]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    made = Desk(await Store.open(tmp_path / "rappd.db"))
    yield made
    await made.dispatcher.stop()
    await made.dispatcher.close()
    await made.store.close()


async def test_repeat_follows_the_turn_under_way_in_its_session(desk: Desk) -> None:
    id = new_id()
    first = desk.ask(id)
    await desk.begun.wait()
    again = desk.ask(id, session="another")
    assert again is first and again.session == "s"
    followed = [asyncio.ensure_future(numbered(again, after)) for after in (0, 1, 9)]
    desk.go.set()
    assert (await again.reply()).data == (await first.reply()).data == {"response": "half and half"}
    assert await asyncio.gather(*followed) == [[(1, "half")], [], []]
    assert (await desk.ask(id).reply()).data == {"response": "half and half"}
    assert desk.performed == 1


async def numbered(turn: Turn, after: int) -> list[tuple[int, str]]:
    return [(number, orjson.loads(event)["text"]) async for number, event in turn.events(after)]


async def test_who_stops_waiting_stops_no_turn_that_runs_by_itself(desk: Desk) -> None:
    turn = desk.ask(new_id())
    await desk.begun.wait()
    waiting = asyncio.ensure_future(turn.reply())
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    desk.go.set()
    assert (await turn.reply()).verb == DONE


async def test_stopped_turn_is_recorded_with_its_reason_and_what_it_said(desk: Desk) -> None:
    turn = desk.ask(new_id())
    await desk.begun.wait()
    turn.cancel("preempted")
    with pytest.raises(RequestCancelledError):
        await turn.reply()
    asked, stopped = await desk.bodies()
    assert asked["verb"] == HELP
    assert (stopped["data"]["reason"], stopped["data"]["response"]) == ("preempted", "half")


async def test_stop_by_id_reaches_no_turn_of_a_guest(desk: Desk) -> None:
    own, guests = new_id(), new_id()
    mine, theirs = desk.ask(own), desk.ask(guests, PI)
    await desk.begun.wait()
    assert not desk.dispatcher.turns.cancel(guests)
    assert desk.dispatcher.turns.cancel(own)
    await mine.over_within(None)
    desk.go.set()
    assert (await theirs.reply()).verb == DONE


async def test_guest_cannot_get_an_owners_turn_by_its_id(desk: Desk) -> None:
    id = new_id()
    mine = desk.ask(id)
    await desk.begun.wait()
    assert desk.ask(id, PI) is not mine


async def test_caller_that_calls_himself_owner_follows_no_operation(desk: Desk) -> None:
    async def work(_: Emit) -> dict[str, Any]:
        await desk.go.wait()
        return {}

    operation = desk.dispatcher.operate(work, OWNER, id="mine")
    assert not desk.dispatcher.turns.cancel("mine"), "as /chat/cancel does"
    asked = Envelope("mine", "owner", DESK, HELP, {"user_input": "hello"})
    assert desk.dispatcher.submit(asked, OWNER, session="s", named=True) is not operation
    desk.go.set()
    assert (await operation.reply()).verb == DONE


async def test_turn_without_a_name_runs_with_who_waits_for_it(desk: Desk) -> None:
    waiting = asyncio.ensure_future(desk.ask(new_id(), named=False).reply())
    await desk.begun.wait()
    assert len(desk.dispatcher.turns) == 0
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert (await desk.bodies())[1]["data"]["reason"] == "stopped"


async def test_what_is_sent_within_a_turn_has_its_sentence_as_parent(desk: Desk) -> None:
    async def perform(context: RequestContext) -> dict[str, Any]:
        call = desk.dispatcher.record_call(
            context, sender=DESK, recipient="Clock_desk", data={"agent": "Clock"}
        )
        desk.dispatcher.record_result(context, call, DONE, {"agent": "Clock", "result": "noon"})
        return {"response": "noon"}

    desk.dispatcher.route(DESK, "brainstem", perform)
    id = new_id()
    await desk.ask(id).reply()
    asked, called, *replies = await desk.bodies()
    assert (asked["id"], called[PARENT]) == (id, id)
    assert [PARENT in one for one in (asked, *replies)] == [False, False, False]


async def test_parent_that_another_machine_names_is_not_taken(desk: Desk) -> None:
    desk.go.set()
    asked = Envelope(new_id(), "brainstem_pi", DESK, HELP, {"prompt": "hello"}, {PARENT: new_id()})
    reply = await desk.dispatcher.submit_once(asked, PI).reply()
    await desk.dispatcher.record_reply(
        Envelope(new_id(), "brainstem_pi", DESK, DONE, {}, {PARENT: ["x"]}), reply.thread
    )
    assert [PARENT in one for one in await desk.bodies()] == [False, False, False]


async def test_state_takes_the_place_of_the_one_before_it(desk: Desk) -> None:
    async def work(emit: Emit) -> dict[str, Any]:
        for done in range(1000):
            emit(Progress("pack", done, 999))
            if done == 500:
                desk.begun.set()
                await desk.go.wait()
        emit(Progress("save", 1, 1))
        return {"packed": "rose.egg"}

    turn = desk.dispatcher.operate(work, OWNER)
    await desk.begun.wait()
    told: list[tuple[int, int]] = []

    async def follow() -> None:
        async for number, event in turn.events():
            told.append((number, orjson.loads(event)["done"]))

    following = asyncio.ensure_future(follow())
    while not told:
        await asyncio.sleep(0)
    desk.go.set()
    assert (await turn.reply()).data == {"packed": "rose.egg"}
    await following
    assert told == [(501, 500), (1000, 999), (1001, 1)]
    assert [number async for number, _ in turn.events()] == [1000, 1001]


async def test_operation_is_asked_to_stop_and_may_refuse(desk: Desk) -> None:
    async def work(_: Emit) -> dict[str, Any]:
        await desk.go.wait()
        return {}

    def refuses() -> None:
        raise ConflictError("Too late to cancel.", do="Wait.")

    turn = desk.dispatcher.operate(work, OWNER, id="mine", stop=refuses)
    assert desk.dispatcher.operation("mine") is turn
    with pytest.raises(ConflictError, match="under way already"):
        desk.dispatcher.operate(work, OWNER, id="mine")
    with pytest.raises(ConflictError, match="Too late"):
        turn.cancel()
    desk.go.set()
    assert (await turn.reply()).verb == DONE
    await asyncio.sleep(0)
    assert desk.dispatcher.operation("mine") is None
