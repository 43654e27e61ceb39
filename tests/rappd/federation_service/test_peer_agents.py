"""Agents of other machines as tools of the brainstem here, where the owner offers them; and whose trace a call is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.machines import Machine, pair
from fixtures.running_daemon import agent_source
from hypothesis import given
from hypothesis import strategies as st

from rappd.federation.peer_greeting import read_greeting
from rappd.federation.remote_agents import MOST_AGENTS, MOST_PARAMETERS, names_told, offered_agents
from tests.rappd.programs.test_mcp import call, names, result

CLOCK = agent_source("Clock", 'return "noon on pi"', "Tells the \\x1b[31mtime\\u202e there.")
SLOSH = agent_source("Slosh", 'return __import__("json").dumps({"text": "full", "data_slush": {"level": 7}})')
LEVEL = agent_source(
    "Level", "return str(getattr(self, 'context', {}).get('upstream_slush'))", "Tells the level."
)
OWN = agent_source("Clock_on_pi", 'return "mine"', "The one of this machine.")
HUGE = agent_source(
    "Huge", description="Huge.", properties='{"a": {"type": "string", "description": "x" * 100000}}'
)


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine, FakeModel]]:
    folder = tmp_path_factory.mktemp("offered")
    model = FakeModel()
    model.start()
    desk = Machine(folder / "desk", "desk", OPENAI_BASE_URL=model.url, OPENAI_MODEL="small")
    pi = Machine(folder / "pi", "pi")
    pi.drop("clock_agent.py", CLOCK)
    pi.drop("slosh_agent.py", SLOSH)
    pi.drop("huge_agent.py", HUGE)
    desk.drop("level_agent.py", LEVEL)
    try:
        for one in (desk, pi):
            one.start()
        pair(desk, pi)
        desk.knows("pi")
        desk.wait_for(lambda: len(desk.row("pi")["agents_here"]) > 0, what="pi's agents")
        assert not [name for name in tools(desk, model) if name.endswith("_on_pi")], (
            "before the owner says so"
        )
        yield desk, pi, model
    finally:
        for one in (desk, pi):
            one.stop()
        model.stop()


def offer(desk: Machine, on: bool) -> None:
    desk.owner("POST", "/peers/pi/offer", {"on": on})


def tools(desk: Machine, model: FakeModel) -> dict[str, Any]:
    model.will(says("."))
    desk.talk("what is there?")
    return {tool["function"]["name"]: tool["function"] for tool in model.asked[0].get("tools", [])}


def test_peer_agents_are_tools_once_the_owner_says_so(
    network: tuple[Machine, Machine, FakeModel],
) -> None:
    desk, _, model = network
    offer(desk, False)  # whichever test was before
    assert not [name for name in tools(desk, model) if name.endswith("_on_pi")]
    offer(desk, True)
    found = tools(desk, model)
    assert found["Clock_on_pi"]["description"] == "On the machine pi: Tells the  [31mtime  there."
    assert "Huge_on_pi" not in found
    assert "AskPeer_on_pi" not in found
    assert not {"LearnNew_on_pi", "SwarmFactory_on_pi"} & set(found)
    assert len(found) == len(set(found))
    offer(desk, False)
    assert "Clock_on_pi" not in tools(desk, model)


def test_a_call_brings_the_result_and_its_slush(network: tuple[Machine, Machine, FakeModel]) -> None:
    desk, pi, model = network
    offer(desk, True)
    model.will(calls(("Clock_on_pi", {})), says("There."))
    answer = desk.talk("what time is it on pi?", session_id="clock")
    assert model.results() == {"Clock_on_pi": "noon on pi"}
    assert answer["agent_logs"] == "[Clock_on_pi] noon on pi"
    model.will(calls(("Slosh_on_pi", {})), calls(("Level", {})), says("There."))
    desk.talk("how full?")
    assert "'level': 7" in model.results()["Level"]
    there = [e for t in pi.threads() for e in t if e["from"].endswith(desk.fingerprint[:16])]
    assert {e["data"]["agent"] for e in there} == {"Clock", "Slosh"}


def test_an_agent_here_keeps_its_name(network: tuple[Machine, Machine, FakeModel]) -> None:
    desk, _, model = network
    offer(desk, True)
    desk.drop("own_agent.py", OWN)
    desk.wait_for(lambda: "Clock_on_pi" in desk.agent_names(), what="the agent here")
    try:
        found = tools(desk, model)
        assert found["Clock_on_pi"]["description"] == "The one of this machine."
        model.will(calls(("Clock_on_pi", {}), ("Clock_on_pi_2", {})), says("There."))
        desk.talk("both")
        assert model.results() == {"Clock_on_pi": "mine", "Clock_on_pi_2": "noon on pi"}
    finally:
        (desk.agents / "own_agent.py").unlink()
        desk.wait_for(lambda: "Clock_on_pi" not in desk.agent_names(), what="the agent here to go")


def test_without_a_model_they_are_found_too(
    network: tuple[Machine, Machine, FakeModel], tmp_path_factory: pytest.TempPathFactory
) -> None:
    _, pi, _ = network
    shed = Machine(tmp_path_factory.mktemp("offline") / "shed", "shed").start()
    try:
        pair(shed, pi)
        shed.knows("pi")
        shed.owner("POST", "/peers/pi/offer", {"on": True})
        assert "noon on pi" in shed.talk("Clock_on_pi")["response"]
    finally:
        pi.owner("POST", "/peers/shed/revoke")
        shed.stop()


def test_a_program_on_stdio_is_offered_them_too(network: tuple[Machine, Machine, FakeModel]) -> None:
    desk, _, _ = network
    offer(desk, True)
    assert "Clock_on_pi" in names(result(desk, "tools/list", control=True))
    found = call(desk, "Clock_on_pi", control=True)
    assert (found["isError"], found["content"][0]["text"]) == (False, "noon on pi")
    assert "Clock_on_pi" not in names(result(desk, "tools/list")), "without a token there are turns alone"
    offer(desk, False)
    assert "Clock_on_pi" not in names(result(desk, "tools/list", control=True))


def traces(machine: Machine, thread: str) -> set[str]:
    """The trace ids that a thread's record holds."""
    lines = machine.cli("threads", "export", thread).stdout.splitlines()
    found = [json.loads(line).get("_x_traceparent", "") for line in lines]
    return {one.split("-")[1] for one in found if one}


def test_the_callers_trace_goes_on_at_the_next_machine(
    network: tuple[Machine, Machine, FakeModel], tmp_path_factory: pytest.TempPathFactory
) -> None:
    desk, pi, model = network
    offer(desk, True)
    lap = Machine(tmp_path_factory.mktemp("trace") / "lap", "lap").start()
    try:
        pair(lap, desk)
        model.will(calls(("AskPeer", {"peer": "pi", "agent": "Clock"})), says("There."))
        row = lap.call("desk", text="what time is it on pi?")
        assert row["result"] == "There."
        (begun,) = traces(lap, row["thread"])
        assert begun == row["id"].replace("-", "")
        for machine, asker in ((desk, lap), (pi, desk)):
            asked = [e for t in machine.threads() for e in t if e["from"].endswith(asker.fingerprint[:16])]
            assert any(begun in traces(machine, e["thread"]) for e in asked)
    finally:
        desk.owner("POST", "/peers/lap/revoke")
        lap.stop()


def test_a_guest_is_told_of_nothing_that_it_may_not_use(
    network: tuple[Machine, Machine, FakeModel],
) -> None:
    desk, pi, model = network
    desk.drop("secret_project_agent.py", "class A(:\n")
    desk.owner("POST", "/peers/pi/scopes", {"scopes": ["HELP.brainstem", "HELP.brainstem.Level"]})
    offer(desk, True)
    try:
        desk.wait_for(
            lambda: "Clock_on_pi" in tools(desk, model) and "secret_project" in model.system(0),
            what="the broken file to be known",
        )
        model.will(says("."))
        assert pi.call("desk", text="what is there?")["result"] == "."
        assert model.tools(0) == ["Level"]
        assert "secret_project" not in model.system(0)
        assert "HackerNews" not in model.system(0)
    finally:
        desk.owner("POST", "/peers/pi/scopes", {"scopes": ["*"]})
        (desk.agents / "secret_project_agent.py").unlink()


def test_they_go_with_the_peer_and_with_the_trust(network: tuple[Machine, Machine, FakeModel]) -> None:
    desk, pi, model = network
    offer(desk, True)
    assert "Clock_on_pi" in tools(desk, model)
    pi.stop()
    desk.misses("pi")
    assert "Clock_on_pi" not in tools(desk, model)
    pi.start()
    desk.knows("pi")
    assert "Clock_on_pi" in tools(desk, model)

    def revoked(body: dict[str, Any]) -> dict[str, Any]:
        desk.owner("POST", "/peers/pi/revoke")
        return calls(("Clock_on_pi", {}))

    model.will(revoked, says("There."))  # in the middle of the turn that was offered it
    desk.talk("what time is it on pi?")
    assert model.results() == {"Clock_on_pi": "Error: pi's agents may not be used any more."}
    assert not [name for name in tools(desk, model) if name.endswith("_on_pi")]


def card(**fields: Any) -> dict[str, Any]:
    return {
        "name": "Clock",
        "description": "Time.",
        "parameters": {"type": "object", "properties": {}},
        **fields,
    }


def nested(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "object", "properties": {}}
    for _ in range(levels):
        found = {"type": "object", "properties": {"a": found}}
    return found


@pytest.mark.parametrize(
    "row",
    [
        card(name="Clock\u202e"),
        card(name="Clock\x1b[2J"),
        card(name=""),
        card(name="x" * 65),
        card(name=5),
        card(name="AskPeer"),
        card(parameters=nested(40)),
        card(parameters={"type": "object", "properties": {"a": {"description": "x" * (1 << 20)}}}),
        card(parameters={"type": "object", "properties": {"a\x00b": {"type": "string"}}}),
        card(parameters={"type": "object", "properties": {"a": {"enum": ["\x1b[31m"]}}}),
        card(parameters={"type": "array"}),
        card(parameters="text"),
        "Clock",
        None,
        7,
    ],
)
def test_an_odd_announcement_leaves_that_agent_out_and_no_other(row: Any) -> None:
    found = offered_agents(read_greeting({"agents": [row, card(name="Good")]}).agents)
    assert [agent.name for agent in found] == ["Good"]


def test_ten_thousand_agents_are_cut_and_none_comes_twice() -> None:
    many = {"agents": [card(name=f"A{number // 2}") for number in range(10_000)]}
    found = [agent.name for agent in offered_agents(read_greeting(many).agents)]
    assert len(found) == len(set(found)) == MOST_AGENTS


def test_prose_is_tamed_at_every_depth() -> None:
    inner = {"type": "string", "description": "a\x1b[31mb\u202ec"}
    (agent,) = offered_agents(
        [card(description="x\n" * 999, parameters={"type": "object", "properties": {"a": inner}})]
    )
    assert agent.parameters["properties"]["a"]["description"] == "a [31mb c"
    assert agent.description.isprintable()
    assert len(agent.description) <= 400


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


@given(JSON | st.fixed_dictionaries({"agents": st.lists(JSON | st.builds(card, parameters=JSON, name=JSON))}))
def test_no_announcement_does_harm(said: Any) -> None:
    greeting = read_greeting(said if isinstance(said, dict) else {})
    for agent in offered_agents(greeting.agents):
        assert agent.name.isascii()
        assert len(orjson.dumps(agent.parameters)) <= 2 * MOST_PARAMETERS
        assert agent.parameters["type"] == "object"
    assert all(name.isascii() for name in names_told(greeting.capabilities))
