from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from fixtures.refusals import refused

from agents.basic_agent import BasicAgent
from agents.chains.graph import AgentGraph


class Node(BasicAgent):
    def __init__(self, does: Callable[..., Any]) -> None:
        super().__init__("Node", {})
        self.does = does

    def perform(self, **kwargs: Any) -> Any:
        return self.does(self, kwargs)


def gives(**slush: Any) -> Node:
    return Node(lambda agent, kwargs: json.dumps({"data_slush": slush, "got": kwargs}))


def tells_upstream() -> Node:
    return Node(lambda agent, kwargs: {"upstream": dict(agent.context.slush), "got": kwargs})


def fails() -> Node:
    def perform(agent: Node, kwargs: dict[str, Any]) -> Any:
        raise ValueError("no rain gauge")

    return Node(perform)


def test_upstream_slush_is_keyed_by_node() -> None:
    graph = AgentGraph().add("end", tells_upstream(), {"n": 1}, depends_on=["left", "right"])
    done = graph.add("left", gives(x=1)).add("right", gives(y=2)).run(city="Oslo")
    assert done.status == "success"
    assert done.nodes["end"].result == {"upstream": {"left": {"x": 1}, "right": {"y": 2}}, "got": {"n": 1}}
    assert done.nodes["left"].result == {"data_slush": {"x": 1}, "got": {"city": "Oslo"}}
    assert done.execution_order[-1] == "end"
    assert set(done.execution_order) == {"left", "right", "end"}


def test_a_node_without_slush_hands_on_a_synthetic_one() -> None:
    plain = Node(lambda agent, kwargs: "words")
    done = AgentGraph().add("a", plain).add("b", tells_upstream(), depends_on="a").run()
    assert done.nodes["b"].result is not None
    assert done.nodes["b"].result["upstream"]["a"]["signals"] == {
        "step_name": "a",
        "step_result_status": "success",
    }


def test_independent_nodes_run_side_by_side() -> None:
    meet = threading.Barrier(3, timeout=100)
    together = Node(lambda agent, kwargs: {"place": meet.wait()})
    graph = AgentGraph().add("a", together).add("b", together).add("c", together)
    assert graph.run().status == "success"


def test_one_agent_in_two_nodes_at_once_keeps_its_slush_apart() -> None:
    meet = threading.Barrier(2, timeout=100)

    def echo(agent: Node, kwargs: dict[str, Any]) -> Any:
        meet.wait()
        return {"data_slush": {"n": kwargs["n"]}}

    agent = Node(echo)
    graph = AgentGraph().add("a", agent, {"n": 1}).add("b", agent, {"n": 2})
    done = graph.add("end", tells_upstream(), depends_on=["a", "b"]).run()
    assert done.nodes["end"].result == {"upstream": {"a": {"n": 1}, "b": {"n": 2}}, "got": {}}


def test_dependents_of_a_failure_are_skipped_others_are_not() -> None:
    graph = (
        AgentGraph()
        .add("bad", fails())
        .add("child", gives(), depends_on=["bad"])
        .add("grandchild", gives(), depends_on=["child", "good"])
        .add("good", gives(x=1))
        .add("other", tells_upstream(), depends_on=["good"])
    )
    done = graph.run()
    assert {name: node.status for name, node in done.nodes.items()} == {
        "bad": "error",
        "child": "skipped",
        "grandchild": "skipped",
        "good": "success",
        "other": "success",
    }
    assert (done.status, done.failed_node, done.error) == ("partial", "bad", "ValueError: no rain gauge")
    assert set(done.execution_order) == {"bad", "good", "other"}
    assert json.loads(json.dumps(done.as_json()))["nodes"]["child"]["status"] == "skipped"


def test_a_returned_error_fails_the_node() -> None:
    bad = Node(lambda agent, kwargs: {"status": "Error", "message": "no rain gauge"})
    done = AgentGraph().add("a", bad).add("b", gives(), depends_on=["a"]).run()
    assert (done.status, done.error, done.nodes["b"].status) == ("error", "no rain gauge", "skipped")


def test_a_node_past_its_limit_fails() -> None:
    release = threading.Event()
    stuck = Node(lambda agent, kwargs: release.wait(100))
    try:
        done = AgentGraph(node_timeout=20).add("a", stuck).add("b", gives(), depends_on=["a"]).run()
    finally:
        release.set()
    assert (done.nodes["a"].error, done.nodes["b"].status) == ("a was stopped after 20 ms", "skipped")


def test_a_circle_is_refused_before_anything_runs() -> None:
    ran: list[str] = []
    note = Node(lambda agent, kwargs: ran.append("ran"))
    graph = AgentGraph().add("start", note).add("a", note, depends_on=["b"]).add("b", note, depends_on=["a"])
    with refused("graph_refused", match=r"a → b → a|b → a → b"):
        graph.run()
    assert ran == []
    with refused("graph_refused", match="a → a"):
        AgentGraph().add("a", note, depends_on=["a"]).validate()


def test_a_missing_dependency_and_a_name_twice_are_refused() -> None:
    with refused("graph_refused", match="a depends on ghost"):
        AgentGraph().add("a", gives(), depends_on=["ghost"]).run()
    with refused("graph_refused", match="node a already"):
        AgentGraph().add("a", gives()).add("a", gives())


def test_filters_and_privacy_hold_in_a_graph() -> None:
    private = tells_upstream()
    private.slosh_privacy = {"redact": ["upstream_slush.shop.card"]}
    graph = AgentGraph().add("shop", gives(card="4111", mood="sunny"))
    done = graph.add("b", private, depends_on=["shop"]).run()
    assert done.nodes["b"].result == {"upstream": {"shop": {"mood": "sunny"}}, "got": {}}


def test_an_empty_graph_succeeds_with_nothing() -> None:
    assert (AgentGraph().run().status, AgentGraph().run().nodes) == ("success", {})
