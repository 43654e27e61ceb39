"""The registry of what can be called: who sees what of it, and that every list of agents is a list from it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, says
from fixtures.running_daemon import RunningDaemon, agent_source

from agents.contract.agent import Agent
from agents.contract.file_discovery import AgentFile
from rappd.dispatch.endpoints import Endpoint, Endpoints
from rappd.dispatch.rights import ANYBODY, DEVICE, OWNER, PEER, Caller, Right
from rappd.tenants.tenant_endpoints import agent_endpoints, whole_endpoint

HERE = Caller("loopback")
OPERATOR = Caller("control", operator=True)
MINE = Caller("federation", peer="a" * 64, caps=("*",), mine=True)
FRIEND = Caller("federation", peer="b" * 64, caps=("*",))
CLOCKS = Caller("federation", peer="c" * 64, caps=("HELP.brainstem.Clock",))
STRANGER = Caller("federation", caps=())
PHONE = Caller("tether", device="d" * 64, caps=("HELP.*", "LOOK"))
EVERYBODY = {
    "here": HERE,
    "operator": OPERATOR,
    "mine": MINE,
    "friend": FRIEND,
    "clocks": CLOCKS,
    "stranger": STRANGER,
    "phone": PHONE,
}


@pytest.mark.parametrize(
    ("right", "admitted"),
    [
        (ANYBODY, {"here", "operator"}),
        (OWNER, {"operator"}),
        (PEER("HELP.brainstem.Clock"), {"here", "operator", "mine", "friend", "clocks", "phone"}),
        (PEER("HELP.brainstem.Clock", mine=True), {"here", "operator", "mine"}),
        (PEER("SNAPSHOT"), {"here", "operator", "mine", "friend"}),
        (DEVICE("LOOK"), {"phone"}),
    ],
)
def test_right_admits_those_it_is_for(right: Right, admitted: set[str]) -> None:
    assert {name for name, caller in EVERYBODY.items() if right.admits(caller)} == admitted


async def _call(*_: Any) -> Any:
    raise NotImplementedError


def _agent(name: str, *, trusted: bool = False) -> Agent:
    file = AgentFile(f"{name.lower()}_agent.py", Path(f"{name}.py"), (0, 0, 0))
    schema = {"type": "object", "properties": {"action": {"type": "string"}, "path": {"type": "string"}}}
    return Agent(name, name, f"{name} does it.", schema, file, "yours", "", "", trusted=trusted)


def _published(*agents: Agent) -> Endpoints:
    found = Endpoints()
    whole = whole_endpoint("brainstem", "brainstem_1", "desk", _call)
    found.publish(whole, agent_endpoints("brainstem", "1" * 64, agents, _call, lambda form: 1))
    return found


def test_exposure_of_agents_says_who_sees_them() -> None:
    found = _published(_agent("AskPeer", trusted=True), _agent("Clock"), _agent("Twin", trusted=True))
    seen = {
        name: [one.name for one in found.agents("brainstem", caller)] for name, caller in EVERYBODY.items()
    }
    assert seen == {
        "here": ["AskPeer", "Clock"],
        "operator": ["AskPeer", "Clock", "Twin"],
        "mine": ["AskPeer", "Clock"],
        "friend": ["Clock"],
        "clocks": ["Clock"],
        "stranger": [],
        "phone": ["Clock", "Twin"],
    }
    (clock,) = found.agents("brainstem", CLOCKS)
    assert (clock.id, clock.output) == ("Clock_" + "1" * 16, None)
    assert clock.input["properties"].keys() == {"action", "path"}
    looks = found.agents("brainstem", PHONE)[1]
    assert (looks.kind, looks.input["properties"].keys()) == ("look", {"action"})
    assert "overview" in looks.input["properties"]["action"]["enum"]


def test_unapproved_agent_of_a_structural_name_is_shown_to_no_phone() -> None:
    found = _published(_agent("Twin"))
    assert found.agents("brainstem", PHONE) == []


def test_agents_are_found_by_their_names_and_never_as_what_only_looks() -> None:
    found = _published(_agent("Clock"), _agent("Twin", trusted=True))
    for name in ("Twin", "twin"):
        twin = found.named("brainstem", name)
        assert twin is not None and twin.exposure == OWNER
    assert found.named("brainstem", "Nobody") is None
    assert found.named("another", "Clock") is None


def test_tenant_that_is_closed_can_be_called_no_more() -> None:
    found = _published(_agent("Clock"))
    assert [one.id for one in found.tenants()] == ["brainstem_1"]
    found.withdraw("brainstem")
    assert (found.tenants(), found.published("brainstem")) == ([], ())


def test_agents_elsewhere_are_looked_for_only_where_the_caller_may_have_them() -> None:
    found, asked = Endpoints(), []
    there = Endpoint("C_2", "elsewhere", "pi", "Clock_on_pi", "", {}, None, ANYBODY, _call)

    def source() -> list[Endpoint[Any]]:
        asked.append(True)
        return [there]

    found.add_source(ANYBODY, source)
    assert list(found.elsewhere(MINE)) == [] and not asked
    assert list(found.elsewhere(HERE)) == [there]


def test_every_list_of_agents_is_the_registrys(make_daemon: Callable[..., RunningDaemon]) -> None:
    model = FakeModel()
    model.start()
    daemon = make_daemon(RAPPD_HTTP_TOOLS="1", OPENAI_BASE_URL=model.url, OPENAI_MODEL="small")
    daemon.drop("clock_agent.py", agent_source("Clock", 'return "noon"'))
    daemon.start()

    def listed() -> list[list[str]]:
        model.will(says("done"))
        daemon.chat("hello")
        published = daemon.get("/tether/tools").json()["tools"]
        return [model.tools(), [tool["function"]["name"] for tool in published]]

    try:
        of_turn, of_programs = listed()
        assert "Clock" in of_turn and of_turn == of_programs
        daemon.request("DELETE", "/agents/clock_agent.py", control=True)
        of_turn, of_programs = listed()
        assert "Clock" not in of_turn and of_turn == of_programs
    finally:
        model.stop()
