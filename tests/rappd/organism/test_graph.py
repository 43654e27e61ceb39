"""The graph of the organism, as a table, as text for two programs, and on a daemon."""

from __future__ import annotations

import json

from fixtures.running_daemon import RunningDaemon

from rappd.features.organism.graph import Edge, Node, as_dot, as_mermaid, graph_of

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
ADDRESSES = {"brainstem_1": "brainstem", "Dice_1": "agent:Dice"}
CALLS = [("somebody", "brainstem_1", 2), ("brainstem_1", "Dice_1", 3), ("a", "gone_1", 9)]


def test_calls_are_counted_between_nodes_and_strangers_are_one() -> None:
    graph = graph_of(NODES, LINKS, CALLS, ADDRESSES)
    assert graph.nodes[0].id == "person"
    assert {(one.source, one.target): one.calls for one in graph.edges} == {
        ("brainstem", "agent:Dice"): 3,
        ("agent:odd", "gateway:lab"): 0,
        ("person", "brainstem"): 2,
    }


def test_a_name_cannot_leave_its_place_in_a_text() -> None:
    graph = graph_of(NODES, LINKS, CALLS, ADDRESSES)
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
