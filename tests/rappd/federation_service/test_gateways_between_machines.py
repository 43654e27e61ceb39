"""Gateways between machines: an agent's tools there, in each mode."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.machines import Machine, pair
from fixtures.running_daemon import agent_source


def search(where: str, *, slow: bool = False) -> str:
    wait = "__import__('time').sleep(20); " if slow else ""
    body = f"{wait}return 'on {where}: ' + str(kwargs.get('query'))"
    return agent_source("Search", body, f"Searches {where}.", '{"query": {"type": "string"}}')


@pytest.fixture(scope="module")
def network(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[Machine, Machine, Machine, FakeModel]]:
    folder = tmp_path_factory.mktemp("gateways")
    model = FakeModel()
    model.start()
    desk = Machine(folder / "desk", "desk", OPENAI_BASE_URL=model.url, OPENAI_MODEL="small")
    pi, shed = (Machine(folder / name, name) for name in ("pi", "shed"))
    pi.drop("search_agent.py", search("pi", slow=True))
    shed.drop("search_agent.py", search("shed"))
    (desk.home / "prompts").mkdir(parents=True)
    (desk.home / "prompts" / "clerk.md").write_text("You look things up.")
    try:
        for one in (desk, pi, shed):
            one.start()
        for other in (pi, shed):
            pair(desk, other)
            desk.knows(other.name)
            desk.wait_for(
                lambda other=other: "Search" in str(desk.row(other.name)["agents_here"]), what="agents"
            )
        yield desk, pi, shed, model
    finally:
        for one in (desk, pi, shed):
            one.stop()
        model.stop()


def organism(network: Any, mode: str, *names: str, key: str = "") -> None:
    desk, pi, shed, _ = network
    keys = {"lab": key or pi.fingerprint, "barn": shed.fingerprint}
    (desk.home / "organism.yaml").write_text(
        "gateways:\n"
        + "".join(f"  - {{name: {name}, fingerprint: {keys[name]}}}\n" for name in keys)
        + "agents:\n  - name: clerk\n    prompt: prompts/clerk.md\n"
        + f"    tools: [{{name: Search, gateways: [{', '.join(names)}], mode: {mode}}}]\n"
    )
    desk.owner("POST", "/organism/reload", {})


def asked(network: Any) -> tuple[str, list[Any]]:
    """The result of the tool as the model saw it, and the records of the turn."""
    desk, _, _, model = network
    model.will(calls(("Search", {"query": "nails"})), says("found"))
    ran = desk.owner("POST", "/agents/run", {"agent": "clerk", "args": {"text": "look up nails"}})
    assert ran["ok"], ran
    tree = desk.owner("GET", f"/threads/{ran['thread']}/tree")
    return next(iter(model.results().values())), tree


def test_a_single_gateway_is_asked_and_its_answer_is_from_that_machine(network: Any) -> None:
    desk, _, shed, model = network
    organism(network, "single", "barn")
    result, tree = asked(network)
    assert result == "on shed: nails"
    assert f"brainstem_{shed.fingerprint[:16]}" in json.dumps(tree)
    assert "Search" in model.tools(0)
    edges = desk.owner("GET", "/organism/graph")["edges"]
    assert any((one["from"], one["to"]) == ("gateway:barn", f"peer:{shed.fingerprint[:16]}") for one in edges)


def test_the_first_answer_wins(network: Any) -> None:
    organism(network, "first-answer-wins", "lab", "barn")
    result, _ = asked(network)
    assert result == "on shed: nails"


def test_all_answer_under_their_own_ids(network: Any) -> None:
    _, pi, shed, _ = network
    pi.drop("search_agent.py", search("pi"))
    organism(network, "all", "lab", "barn")
    result, _ = asked(network)
    assert json.loads(result) == [
        {"from": f"Search_{pi.fingerprint[:16]}", "result": "on pi: nails"},
        {"from": f"Search_{shed.fingerprint[:16]}", "result": "on shed: nails"},
    ]


def test_another_key_refuses_the_gateway_and_the_command_pairs_one_that_is_not(network: Any) -> None:
    desk, _, _, model = network
    organism(network, "single", "lab", key="ab" * 32)
    model.will(says("no tool"))
    desk.owner("POST", "/agents/run", {"agent": "clerk", "args": {"text": "look up nails"}})
    assert "Search" not in model.tools(0)
    shown = desk.cli("organism", "show").stdout
    assert "lab: not paired" in shown and f"rappd peers pair lab --fingerprint {'ab' * 32}" in " ".join(
        shown.split()
    )
    desk.owner("POST", "/peers/pi/rename", {"name": "lab"})
    desk.wait_for_log("security: the gateway lab is refused")
    assert "lab: another key" in desk.cli("organism", "show").stdout
    news = [one["what"] for one in desk.owner("GET", "/notices")["notices"]]
    assert any("The gateway lab is refused" in one for one in news)
    desk.owner("POST", "/peers/lab/rename", {"name": "pi"})
