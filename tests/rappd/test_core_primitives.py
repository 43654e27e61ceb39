"""Payloads of ``core``: threads, delays and timers that handlers ask for, and messages of the system that they get."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon
from lxml import etree
from msgspec.structs import replace

import agents.primitives
from agents.contract.loading import load_agent_file
from agents.listener import declared
from agents.runtimes.python.pools.answers import EmittedPayload
from envelopes.envelope import HELP, THREAD, Envelope, new_id
from envelopes.payloads.core import ANSWERS, CORE_NS, PRIMITIVES, SYSTEM
from envelopes.payloads.schemas import example, xml_text, xsd_of_all
from envelopes.payloads.xml import element_of, value_of
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import RequestContext
from rappd.errors import ConflictError, RefusedError
from rappd.features.timers.handler_delays import Delays
from rappd.sessions.schedule.timers import Timers
from rappd.store.store import Store
from rappd.store.timer_table import TimerTable
from tests.rappd.test_listener_states import COUNT, states

HEAD = """\
from dataclasses import dataclass
from agents.listener import listener
from agents.primitives import *
"""
WATCH = (
    HEAD
    + '''
@listener(category="tests")
@dataclass
class Watch:
    """Looks again, some times."""
    left: int = 1
    seconds: float = 1.0

@dataclass
class Seen:
    times: int

def watch(payload: Watch, state: dict):
    state["times"] = state.get("times", 0) + 1
    if payload.left:
        return Delay(payload.seconds, Watch(payload.left - 1, payload.seconds))
    return Seen(state["times"])
'''
)
SPAWN = (
    HEAD
    + '''
@listener(category="tests")
@dataclass
class Spread:
    """Begins threads."""
    how: str = "typed"

def spread(payload: Spread):
    if payload.how == "text":
        return (
            '<spawn-thread xmlns="https://xml-pipeline.org/ns/core/v1"><name>deep</name>'
            '<payload><again xmlns=""/></payload></spawn-thread>'
        )
    if payload.how == "many":
        return [SpawnThread("deep", Again()) for _ in range(33)]
    if payload.how == "bad name":
        return SpawnThread("../..")
    if payload.how == "timer":
        return Timer(what="call mum", when="in 3 hours")
    if payload.how == "short":
        return Delay(0.1)
    if payload.how == "open":
        return TodoUntil("seen")
    return [SpawnThread("deep", Again()), SpawnThread("deep")]

@listener(category="tests", name="again")
@dataclass
class Again:
    """Says that it was asked."""
    times: int = 1

def again(payload: Again) -> str:
    return f"asked {payload.times}"
'''
)
TAKEN = (
    HEAD
    + '''
@listener(category="tests")
@dataclass
class Plan:
    """Asks core, and hears what came of it."""
    how: str

def plan(payload: Plan):
    if payload.how == "spawn":
        return SpawnThread("deep")
    if payload.how == "delay":
        return Delay(900)
    return Timer(what="water the roses", when="in 3 hours")

def spawned(payload: ThreadSpawned) -> str: return f"heard of {payload.name}"
def delayed(payload: Delayed, state: dict) -> str:
    state["heard"] = state.get("heard", 0) + 1
    return f"heard {state['heard']}: {payload.until:%Y}"
def timed(payload: TimerAnswer) -> str: return f"heard: {payload.text}"
'''
)
HEARD = (
    HEAD
    + """
def on_boot(payload: Boot) -> str: return repr(payload)
def on_joined(payload: ListenerJoined) -> str: return repr(payload)
def on_left(payload: ListenerLeft) -> str: return repr(payload)
def on_heartbeat(payload: Heartbeat) -> str: return repr(payload)
def on_shutdown(payload: Shutdown) -> str: return repr(payload)
def on_cleared(payload: ContextCleared) -> str: return repr(payload)
"""
)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningDaemon]:
    daemon = RunningDaemon(tmp_path_factory.mktemp("desk"), LLM_FAKE="1")
    daemon.drop("watch_listener.py", WATCH)
    daemon.drop("spread_listener.py", SPAWN)
    daemon.drop("plan_listener.py", TAKEN)
    yield daemon.start()
    daemon.stop()


def run(daemon: RunningDaemon, name: str, **arguments: Any) -> dict[str, Any]:
    found: dict[str, Any] = daemon.post(
        "/agents/run", {"agent": name, "args": arguments}, control=True
    ).json()
    return found


def events(daemon: RunningDaemon, thread: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = daemon.get(f"/threads/{thread}", control=True).json()["events"]
    return found


def test_dataclasses_of_handlers_have_the_forms_that_are_published() -> None:
    classes = [one for one in [*vars(agents.primitives).values()] if isinstance(one, type) and declared(one)]
    made = {}
    for one in classes:
        said = declared(one)
        assert said is not None and said.category == "core"
        fields = vars(agents.primitives)[one.__name__].__dataclass_fields__
        made[said.root or one.__name__.lower()] = [
            (name, field.default is field.default_factory) for name, field in fields.items()
        ]
    assert made == {
        root: [(field.name, field.required) for field in form.fields]
        for root, form in {**PRIMITIVES, **ANSWERS, **SYSTEM}.items()
    }


def test_handler_spawns_threads_whose_names_are_made_unique(desk: RunningDaemon) -> None:
    done = run(desk, "spread")
    first, asked, second = done["result"].splitlines()
    spawned = json.loads(first)["thread-spawned"]
    assert spawned["name"] == "deep" and spawned["parent_id"] == done["thread"]
    assert asked == "asked 1" and json.loads(second)["thread-spawned"]["name"] == "deep-1"
    tree = desk.get(f"/threads/{done['thread']}/tree", control=True).json()["tree"]
    assert [one["path"][1:] for one in tree["threads"]] == [[], ["deep"], ["deep-1"]]
    assert [one["name"] for one in tree["steps"][0]["steps"]] == ["spawn-thread", "again", "spawn-thread"]
    many = run(desk, "spread", how="many")
    assert not many["ok"] and "More than 64 payloads" in many["result"]
    tree = desk.get(f"/threads/{many['thread']}/tree", control=True).json()["tree"]
    assert len(tree["threads"]) == 1, "none of them was sent"
    again = run(desk, "spread", how="text")
    assert again["result"].endswith("asked 1"), again


@pytest.mark.parametrize(
    ("how", "told"),
    [("spawn", "heard of deep"), ("delay", "heard 1: 20"), ("timer", "heard: Reminder set: water the roses")],
)
def test_answers_of_core_go_to_the_file_that_asked_and_takes_them(
    desk: RunningDaemon, how: str, told: str
) -> None:
    done = run(desk, "plan", how=how)
    assert done["result"].startswith(told), done
    called = [
        one["data"]["agent"] for one in events(desk, done["thread"]) if one["verb"] == "HELP" and one["data"]
    ]
    assert len(called) == 3 or how == "timer", called
    assert desk.post("/agents/run", {"agent": called[-1], "args": {}}, control=True).status == 404, (
        "of core alone"
    )
    for row in desk.get("/timers", control=True).json()["timers"]:
        desk.cli("timers", "cancel", row["id"])


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("bad name", "spawn-thread.name is mistyped"),
        ("short", "delay.seconds is mistyped"),
        ("open", "for listeners that a model drives"),
    ],
)
def test_what_core_does_not_take_is_the_answer(desk: RunningDaemon, how: str, told: str) -> None:
    assert told in run(desk, "spread", how=how)["result"]


def test_timer_payload_is_served_by_the_agent_timer(desk: RunningDaemon) -> None:
    assert "Reminder set: call mum" in run(desk, "spread", how="timer")["result"]
    (row,) = [one for one in desk.get("/timers", control=True).json()["timers"] if one["kind"] == "reminder"]
    assert row["what"] == "call mum"


def test_delay_wakes_its_listener_on_its_thread_with_its_state(desk: RunningDaemon) -> None:
    done = run(desk, "watch", left=2)
    assert "until" in json.loads(done["result"])

    def answers() -> list[str]:
        found = events(desk, done["thread"])
        return [
            one["data"]["response"] for one in found if one["verb"] == "DONE" and "response" in one["data"]
        ]

    desk.wait_for(lambda: len(answers()) == 2, what="both wake-ups")
    assert json.loads(answers()[0]).keys() == {"until"} and json.loads(answers()[1]) == {"times": 3}
    desk.wait_for(lambda: not _waiting(desk), what="the end of the delays")


def _waiting(desk: RunningDaemon) -> list[dict[str, Any]]:
    return [one for one in desk.get("/timers", control=True).json()["timers"] if one["kind"] == "delay"]


def test_delay_that_waits_is_listed_and_outlives_a_restart(desk: RunningDaemon) -> None:
    done = run(desk, "watch", left=1, seconds=3)
    (row,) = _waiting(desk)
    assert row["what"] == "watch goes on"
    desk.stop()
    desk.start()
    desk.wait_for(lambda: not _waiting(desk), what="the wake-up")
    assert '{"times":2}' in str(events(desk, done["thread"]))
    run(desk, "watch", left=1, seconds=900)
    (row,) = _waiting(desk)
    assert desk.cli("timers", "cancel", row["id"]).returncode == 0
    assert not _waiting(desk)


def test_listeners_hear_of_starts_joins_heartbeats_cleared_contexts_and_ends(
    make_daemon: Callable[..., RunningDaemon], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rappd.tenants.listener_notifications._SHUTDOWN_SECONDS", 100.0)
    daemon = make_daemon(RAPPD_ORGANISM_HEARTBEAT_SECONDS="1")
    daemon.drop("heard_listener.py", HEARD)
    daemon.start()

    def heard() -> str:
        told = [
            one
            for one in daemon.get("/threads", control=True).json()["threads"]
            if one["title"] == "Messages of the system"
        ]
        return str([one["data"].get("result") for one in events(daemon, told[0]["id"])]) if told else ""

    daemon.wait_for(lambda: "Boot(organism='organism'" in heard(), what="the start")
    assert "heard_boot" not in daemon.agent_names(), "offered to nobody"
    assert daemon.post("/agents/run", {"agent": "heard.boot", "args": {}}, control=True).status == 404
    daemon.drop("watch_listener.py", WATCH)
    daemon.wait_for(lambda: "ListenerJoined(name='watch'" in heard(), what="who joined")
    (daemon.agents / "watch_listener.py").unlink()
    daemon.wait_for(lambda: "ListenerLeft(name='watch'" in heard(), what="who left")
    daemon.wait_for(lambda: "Heartbeat(" in heard(), what="a heartbeat")
    daemon.drop("count_listener.py", COUNT)
    daemon.wait_for(lambda: "'count'" in heard(), what="the counter")
    session = new_id()
    daemon.chat("count how often it is called", session_id=session)
    assert states(daemon) == 1
    (talk,) = daemon.get("/conversations", control=True).json()["conversations"]
    daemon.post(f"/conversations/{talk['id']}/remove", control=True)
    assert states(daemon) == 0
    daemon.wait_for(lambda: "ContextCleared(" in heard(), what="the end of what was kept")
    daemon.stop()
    daemon.start()
    assert "Shutdown(" in heard()
    daemon.wait_for(lambda: heard().count("Boot(") == 2, what="the second start")


@pytest.mark.usefixtures("agent_names")
@pytest.mark.parametrize(
    ("source", "told"),
    [
        (
            '@listener(category="core")\n@dataclass\nclass Mine:\n    "x"\n\ndef f(p: Mine): ...\n',
            "rappd's own category",
        ),
        (
            '@listener(category="core")\n@dataclass\nclass Boot:\n    "x"\n    a: int\n\ndef f(p: Boot): ...\n',
            "has other fields than",
        ),
        ("def f(p: TodoComplete): ...\n", "rappd's own category"),
    ],
    ids=["its category", "other fields", "a primitive"],
)
def test_listener_takes_no_payload_that_core_answers(tmp_path: Path, source: str, told: str) -> None:
    loaded = load_agent_file(tmp_path / "x_listener.py", source=(HEAD + source).encode(), folder=tmp_path)
    assert told in loaded.quarantined[0].reason


def test_payloads_of_core_go_to_xml_and_back_by_the_schema_in_the_docs() -> None:
    forms = [*PRIMITIVES.values(), *ANSWERS.values(), *SYSTEM.values()]
    schema = xsd_of_all(forms)
    checks = etree.XMLSchema(etree.fromstring(schema))
    for form in forms:
        written = xml_text(form, example(form), 1)
        element = element_of(written)
        checks.assertValid(element)
        assert etree.QName(element).namespace == CORE_NS
        found = value_of(form, element)
        assert found == example(form) or found["payload"] == {"text": "<note><text>text</text></note>"}


async def _delays(tmp_path: Path) -> tuple[Store, Timers, Delays]:
    store = await Store.open(tmp_path / "rappd.db")
    timers = Timers(TimerTable(store))
    delays: Any = Delays(timers, None, Dispatcher(store), None, None, None)  # type: ignore[arg-type]  # it fires none
    return store, timers, delays


def _asked(caller: Caller) -> RequestContext:
    help_ = Envelope(new_id(), "lab_token-1", "watch_f", HELP, {}, {THREAD: new_id()})
    return RequestContext(help_, caller, "brainstem")


PAYLOAD = EmittedPayload(text="<watch/>")


async def test_who_may_set_no_timers_begins_no_delay(tmp_path: Path) -> None:
    store, timers, delays = await _delays(tmp_path)
    with pytest.raises(RefusedError, match="may set no timers"):
        await delays.set(_asked(Caller("federation", caps=("HELP.*",))), "watch", 60, PAYLOAD)
    assert not timers.rows
    await delays.set(_asked(Caller("federation", caps=("HELP.*", "TIMER"))), "watch", 60, PAYLOAD)
    assert len(timers.rows) == 1
    await store.close()


async def test_no_more_than_a_thousand_delays_of_one_caller_wait(tmp_path: Path) -> None:
    store, timers, delays = await _delays(tmp_path)
    mine = _asked(Caller("control", operator=True))
    await delays.set(mine, "watch", 60, PAYLOAD)
    (row,) = timers.rows
    timers._rows |= {str(n): replace(row, id=str(n)) for n in range(999)}
    with pytest.raises(ConflictError, match="1000 delays wait already"):
        await delays.set(mine, "watch", 60, PAYLOAD)
    await delays.set(_asked(Caller("loopback")), "watch", 60, PAYLOAD)
    await store.close()
