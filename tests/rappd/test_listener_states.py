"""States of listeners: one for each listener and thread, kept with the answer that it came with, and gone in the end."""

from __future__ import annotations

import asyncio
import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, calls
from fixtures.running_daemon import RunningDaemon
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from agents.contract.agent import Agent
from agents.contract.file_discovery import AgentFile
from agents.runtimes.python.pools.runner import AgentResult
from envelopes.envelope import HELP, Envelope, new_id
from envelopes.payloads.form import PayloadForm
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import RequestContext
from rappd.store.state_table import StateTable
from rappd.store.store import Store
from rappd.tenants.listener_states import ListenerStates, key_of

HEAD = """\
from dataclasses import dataclass
from agents.listener import listener
"""
COUNT = (
    HEAD
    + '''
@listener(category="sums")
@dataclass
class Count:
    """Counts how often it is called."""
    by: int = 1
    fill: int = 0

@dataclass
class Counted:
    number: int

def count(payload: Count, state: dict) -> Counted:
    if payload.fill:
        state["fill"] = "x" * payload.fill
    if payload.by == 0:
        state["number"] = -1
        raise ValueError("not by nothing")
    if payload.by == 13:
        state["more"] = {1}
    state["number"] = state.get("number", 0) + payload.by
    return Counted(state["number"])
'''
)
TWICE = (
    HEAD
    + '''
@listener(category="sums")
@dataclass
class Twice:
    """Has itself counted twice."""
    again: bool = True

@dataclass
class Count:
    by: int

def twice(payload: Twice):
    return [Count(1), Count(1)]
'''
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("desk"), OPENAI_BASE_URL=model.url, OPENAI_MODEL="small")
    daemon.drop("count_listener.py", COUNT)
    daemon.drop("twice_listener.py", TWICE)
    yield daemon.start()
    daemon.stop()


def counted(
    daemon: RunningDaemon, model: FakeModel, session: str, *asked: tuple[str, dict[str, Any]]
) -> dict[str, str]:
    """The results of calls that the model makes in one turn of a session."""
    model.will(calls(*asked), {"role": "assistant", "content": "Done."})
    daemon.chat("count", session_id=session)
    found: dict[str, str] = model.results(-1)
    return found


def states(daemon: RunningDaemon) -> int:
    with closing(sqlite3.connect(daemon.home / "rappd.db")) as db:
        return int(db.execute("SELECT count(*) FROM listener_states").fetchone()[0])


def test_next_call_of_a_conversation_has_the_state_of_the_last_and_no_other_conversation(
    desk: RunningDaemon, model: FakeModel
) -> None:
    one, other, before = new_id(), new_id(), states(desk)
    assert counted(desk, model, one, ("count", {})) == {"count": '{"number":1}'}
    assert counted(desk, model, one, ("count", {"by": 2})) == {"count": '{"number":3}'}
    assert counted(desk, model, other, ("count", {})) == {"count": '{"number":1}'}, "another conversation"
    in_one = counted(desk, model, one, ("twice", {}))
    assert in_one == {"twice": '{"counted":{"number":4}}\n{"counted":{"number":1}}'}, (
        "the path of the call counts"
    )
    assert counted(desk, model, one, ("twice", {}))["twice"].endswith('{"counted":{"number":2}}')
    assert states(desk) == before + 3


def test_calls_of_one_round_have_the_state_one_after_the_other(desk: RunningDaemon, model: FakeModel) -> None:
    many = [("count", {})] * 5
    model.will(calls(*many), {"role": "assistant", "content": "Done."})
    desk.chat("count", session_id=new_id())
    told = [one["content"] for one in model.asked[-1]["messages"] if one["role"] == "tool"]
    assert sorted(told) == [f'{{"number":{number}}}' for number in range(1, 6)]


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"by": 0}, "not by nothing"),
        ({"by": 13}, "its state holds more than JSON can"),
        ({"fill": 70_000}, "65536 are kept"),
    ],
    ids=["fails", "no-json", "too-large"],
)
def test_call_that_fails_changes_no_state(
    desk: RunningDaemon, model: FakeModel, arguments: dict[str, Any], told: str
) -> None:
    session = new_id()
    counted(desk, model, session, ("count", {"by": 5}))
    assert told in counted(desk, model, session, ("count", arguments))["count"]
    assert counted(desk, model, session, ("count", {})) == {"count": '{"number":6}'}


def test_thread_to_which_nobody_comes_back_leaves_no_state(desk: RunningDaemon) -> None:
    before = states(desk)
    for number in range(3):
        done = desk.post("/agents/run", {"agent": "count", "args": {"by": number + 1}}, control=True).json()
        assert done["result"] == f'{{"number":{number + 1}}}'
    desk.wait_for(lambda: states(desk) == before, what="the end of the states")


def test_states_outlive_a_restart_and_end_when_nobody_calls(desk: RunningDaemon, model: FakeModel) -> None:
    session = new_id()
    counted(desk, model, session, ("count", {}))
    desk.stop()
    desk.start()
    assert counted(desk, model, session, ("count", {})) == {"count": '{"number":2}'}
    desk.stop()
    with closing(sqlite3.connect(desk.home / "rappd.db")) as db:
        db.execute("UPDATE listener_states SET at = at - 86400000000")
        db.commit()
    desk.start()
    desk.wait_for(lambda: states(desk) == 0, what="the end of what is a day old")
    assert counted(desk, model, session, ("count", {})) == {"count": '{"number":1}'}


def _listener(name: str) -> Agent:
    form = PayloadForm(name, "sums", name, "Counts.", (), stateful=True)
    file = AgentFile(f"{name}_listener.py", Path(f"{name}_listener.py"), (0, 0, 0))
    return Agent(name, name.replace(".", "_"), "", {}, file, "yours", "", "", listener=form)


class _World:
    """Calls of stateful listeners as the dispatcher records them; each handler appends what it was asked with."""

    def __init__(self, store: Store) -> None:
        self.dispatcher = Dispatcher(store)
        self.states = ListenerStates(StateTable(store), lambda: 86_400.0)
        self.seen: dict[object, list[str]] = {}

    def begin(self, session: str, *, once: bool = False) -> RequestContext:
        asked = Envelope(new_id(), "somebody", "brainstem_f", HELP, {"user_input": session})
        placed = self.dispatcher.open_thread(asked, "brainstem", session=session)
        return RequestContext(placed, Caller("loopback"), "brainstem", once=once)

    async def call(self, context: RequestContext, names: list[str], word: str) -> None:
        """Calls the first listener, whose handler then calls the rest on threads below its own."""
        agent = _listener(names[0])
        request = self.dispatcher.record_call(context, sender="b", recipient="a", data={"word": word})
        async with self.states.call(context, agent) as held:

            async def handle(state: dict[str, Any]) -> AgentResult:
                mine = {"words": list(state.get("words", []))}
                await asyncio.sleep(0)
                mine["words"].append(word)
                return AgentResult(True, "", None, 0.0, state=mine)

            await held.run(handle)
            if names[1:]:
                inner = replace(held.context, envelope=request)
                await self.call(self.dispatcher.fork(inner, names[1]), names[1:], word)
            self.dispatcher.record_result(context, request, "DONE", {}, held.saved())
        self.seen.setdefault(key_of(context, agent), []).append(word)

    def key(self, names: tuple[str, ...], forked: str, listener: str) -> Any:
        """The key of a call on the thread of these names below a conversation's."""
        context = self.begin("one")
        for name in names:
            context = self.dispatcher.fork(context, name)
        return key_of(replace(context, forked=forked), _listener(listener))

    async def kept(self, key: Any) -> list[str]:
        import orjson

        found = await self.states._table.get(*key, since=0)
        return list(orjson.loads(found)["words"]) if found else []


_NAMES = st.lists(st.sampled_from(["calc", "calc.add", "calc-1", "add"]), min_size=1, max_size=4)


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(asked=st.lists(st.tuples(st.sampled_from(["one", "two", "three"]), _NAMES), min_size=1, max_size=12))
def test_no_two_conversations_share_a_state_under_any_interleaving(
    tmp_path: Path, asked: list[tuple[str, list[str]]]
) -> None:
    async def check() -> None:
        store = await Store.open(tmp_path / f"{new_id()}.db")
        world = _World(store)
        contexts = {session: world.begin(session) for session in ("one", "two", "three")}
        await asyncio.gather(
            *(
                world.call(contexts[session], names, f"{session} {n}")
                for n, (session, names) in enumerate(asked)
            )
        )
        told = 0
        for key, words in world.seen.items():
            kept = await world.kept(key)
            assert sorted(kept) == sorted(words), key
            assert len({word.partition(" ")[0] for word in kept}) == 1, "of one conversation alone"
            told += len(kept)
        assert told == sum(len(names) for _, names in asked), "no change is lost"
        await store.close()

    asyncio.run(check())


async def test_thread_that_is_called_as_a_listener_is_not_that_listeners(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "rappd.db")
    world = _World(store)
    keys = [
        world.key((), "", "calc"),
        world.key(("calc",), "", "calc"),
        world.key(("calc-1",), "", "calc"),
        world.key(("calc-1",), "calc", "calc"),
        world.key(("calc-1",), "calc", "add"),
        world.key(("calc-1", "calc"), "calc", "calc"),
    ]
    assert len({key.thread for key in keys[:5]}) == 5, "each by its own path"
    assert world.key(("calc",), "calc", "calc") == keys[0], "its next call has the same, forked or not"
    assert keys[5] == keys[2], "the path counts, and nothing else"
    await store.close()


SHORT_THREADS = int(os.environ.get("SHORT_THREADS", "300"))


@pytest.mark.timeout(600 + SHORT_THREADS // 50)
async def test_many_short_threads_leave_no_rows(tmp_path: Path) -> None:
    store = await Store.open(tmp_path / "rappd.db")
    world = _World(store)
    held: list[int] = []
    for first in range(0, SHORT_THREADS, 100):
        contexts = [world.begin(f"{first + n}", once=True) for n in range(100)]
        await asyncio.gather(*(world.call(one, ["calc", "add"], "x") for one in contexts))
        for one in contexts:
            world.states.turn_over(one)
        await world.states.close()
        world.seen.clear()
        held.append(int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() >> 20)
    assert await store.rows("SELECT count(*) FROM listener_states") == [(0,)]
    assert not world.states._roots
    print(f"{SHORT_THREADS} short threads: {held[len(held) // 5]} MB after a fifth, {held[-1]} MB in the end")
    await store.close()
