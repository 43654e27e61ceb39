"""The graph of the organism, as a table, as text for two programs, and on a daemon."""

from __future__ import annotations

import json

from fixtures.running_daemon import RunningDaemon, agent_source

from rappd.features.organism.graph import PERSON, Edge, Node, as_dot, as_mermaid, graph_of

NODES = [
    Node("brainstem", "attic", "brainstem", "ready"),
    Node("agent:Dice", "Dice", "agent", "ready"),
    Node("agent:odd", 'odd" --> x["', "listener", "quarantined"),
    Node("gateway:lab", "lab", "gateway", "not paired"),
]
LINKS = [
    Edge("brainstem", "agent:Dice", "asks"),
    Edge("agent:Dice", "agent:nobody", "asks"),
    Edge("agent:odd", "gateway:lab", "asks"),
]
GONE = Node("twin:1/Old", "Old of Rose", "agent", "asleep")
CALLS = [(PERSON, NODES[0], 2), (NODES[0], NODES[1], 3), (NODES[0], GONE, 9)]


def test_calls_are_counted_between_nodes_and_what_was_called_is_one() -> None:
    graph = graph_of(NODES, LINKS, CALLS)
    assert graph.nodes[0].id == "person"
    assert {(one.source, one.target): one.calls for one in graph.edges} == {
        ("brainstem", "agent:Dice"): 3,
        ("agent:odd", "gateway:lab"): 0,
        ("person", "brainstem"): 2,
        ("brainstem", "twin:1/Old"): 9,
    }
    assert GONE in graph.nodes


def test_a_name_cannot_leave_its_place_in_a_text() -> None:
    graph = graph_of(NODES, LINKS, CALLS)
    mermaid, dot = as_mermaid(graph), as_dot(graph)
    line = next(one for one in mermaid.splitlines() if "odd" in one)
    assert line == '  n3["odd  --  x[  (listener, quarantined)"]'
    assert '"asks 3"| n2' in mermaid and "-.->" in mermaid
    assert '"brainstem" -> "agent:Dice" [label="asks 3"];' in dot
    assert all(one.count('"') % 2 == 0 for one in dot.splitlines())


def test_the_last_hour_is_in_it(fake_daemon: RunningDaemon) -> None:
    before = fake_daemon.get("/organism/graph", control=True).json()
    ran = fake_daemon.post(
        "/agents/run", {"agent": "calculator", "arguments": {"a": 1, "b": 2}}, control=True
    )
    assert ran.status == 200
    found = fake_daemon.get("/organism/graph", control=True).json()
    assert {"id": "agent:calculator", "name": "calculator", "kind": "listener", "state": "ready"} in found[
        "nodes"
    ]

    def calls(graph: dict[str, list[dict[str, object]]]) -> int:
        return sum(int(str(one["calls"])) for one in graph["edges"] if one["to"] == "agent:calculator")

    assert calls(found) == calls(before) + 1
    shown = fake_daemon.cli("organism", "graph")
    assert shown.stdout.startswith("flowchart LR") and "calculator" in shown.stdout
    assert fake_daemon.cli("organism", "graph", "--format", "dot").stdout.startswith("digraph")
    assert json.loads(fake_daemon.cli("organism", "graph", "--json").stdout)["nodes"]
    assert fake_daemon.get("/organism/graph").status == 403


def test_twins_are_in_it_with_what_is_their_own(fake_daemon: RunningDaemon) -> None:
    keys = {
        name: fake_daemon.post("/twins", {"name": name}, control=True).json()["key"]
        for name in ("Rose", "Ink")
    }
    dice = fake_daemon.home / "twins" / keys["Rose"] / "agents" / "dice_agent.py"
    dice.write_text(agent_source("Dice"))
    fake_daemon.post(f"/twins/{keys['Rose']}/boot", {}, control=True)

    def graph() -> dict[str, list[dict[str, object]]]:
        found: dict[str, list[dict[str, object]]] = fake_daemon.get("/organism/graph", control=True).json()
        return found

    fake_daemon.wait_for(lambda: "Dice of Rose" in json.dumps(graph()), what="the twin's agent")
    found = graph()
    states = {one["id"]: one["state"] for one in found["nodes"] if one["kind"] == "twin"}
    assert states[f"twin:{keys['Rose']}"] == "ready" and states[f"twin:{keys['Ink']}"] in ("asleep", "ready")
    edge = {"from": f"twin:{keys['Rose']}", "to": f"twin:{keys['Rose']}/Dice", "kind": "asks", "calls": 0}
    assert edge in found["edges"]


def test_calls_inside_a_twin_are_counted_there_and_stay_when_it_sleeps(fake_daemon: RunningDaemon) -> None:
    fake_daemon.drop("mine_agent.py", agent_source("Mine"))
    key = fake_daemon.post("/twins", {"name": "Fern"}, control=True).json()["key"]
    (fake_daemon.home / "twins" / key / "agents" / "mine_agent.py").write_text(agent_source("Mine"))

    def calls() -> dict[tuple[str, str], int]:
        found = fake_daemon.get("/organism/graph", control=True).json()
        names = {one["id"]: one["name"] for one in found["nodes"]}
        return {
            (names[one["from"]], names[one["to"]]): one["calls"] for one in found["edges"] if one["calls"]
        }

    fake_daemon.post(f"/twins/{key}/boot", {}, control=True)
    before = calls()
    assert fake_daemon.post(f"/twins/{key}/chat", {"user_input": "hello"}, control=True).status == 200
    assert fake_daemon.post(f"/twins/{key}/agents/run", {"agent": "Mine"}, control=True).status == 200
    counted = {pair: count - before.get(pair, 0) for pair, count in calls().items()}
    assert counted["Fern", "ContextMemory of Fern"] == counted["People and programs", "Fern"] == 1
    assert counted["Fern", "Mine of Fern"] == 1
    assert not any(count for (_, asked), count in counted.items() if asked in ("Mine", "ContextMemory"))
    fake_daemon.post(f"/twins/{key}/stop", {}, control=True)
    asleep = {pair: count - before.get(pair, 0) for pair, count in calls().items()}
    assert asleep == counted


def test_agent_that_a_program_asks_for_by_its_name_is_the_one_asked(fake_daemon: RunningDaemon) -> None:
    issued = fake_daemon.post("/tokens", {"name": "nas", "caps": ["*"]}, control=True).json()["token"]["text"]

    def calls(of: str) -> int:
        edges = fake_daemon.get("/organism/graph", control=True).json()["edges"]
        return sum(one["calls"] for one in edges if one["to"] == of and one["from"] == "person")

    before = {of: calls(of) for of in ("agent:calculator", "brainstem")}
    arguments = {"a": 1, "operation": "add", "b": 2}
    for name in ("calculator", "Nobody"):
        call = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": name, "arguments": arguments},
        }
        own = {"Authorization": f"Bearer {issued}", "MCP-Protocol-Version": "2025-11-25"}
        accepts = {"Accept": "application/json, text/event-stream", **own}
        assert fake_daemon.post("/mcp", call, headers=accepts).status == 200
    after = {of: calls(of) - before[of] for of in before}
    assert after == {"agent:calculator": 1, "brainstem": 0}
