"""Agents that wait for each other: a directed graph, independent ones side by side."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from graphlib import CycleError, TopologicalSorter
from queue import SimpleQueue
from typing import Any, Self

from agents.chains.chain_step import Answer, StepOutcome, elsewhere, run_step
from agents.errors import AgentError


@dataclass(slots=True)
class NodeResult:
    """``status`` is success, error or skipped (a node it depends on did not succeed)."""

    status: str
    result: dict[str, Any] | None = None
    data_slush: Any = None
    duration_ms: float = 0.0
    error: str | None = None


@dataclass(slots=True)
class GraphResult:
    """``status`` is success, partial, or error when no node succeeded; nodes in the order they ended."""

    status: str = "success"
    nodes: dict[str, NodeResult] = field(default_factory=dict)
    total_duration_ms: float = 0.0
    failed_node: str | None = None
    error: str | None = None

    @property
    def execution_order(self) -> list[str]:
        return [name for name, node in self.nodes.items() if node.status != "skipped"]

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "execution_order": self.execution_order}


@dataclass(slots=True, frozen=True)
class _Node:
    agent: Any
    arguments: Mapping[str, Any]
    depends_on: tuple[str, ...]


class AgentGraph:
    """Nodes and what they depend on. ``node_timeout`` is in milliseconds, None for no limit."""

    def __init__(self, node_timeout: float | None = None) -> None:
        self.node_timeout = node_timeout
        self._nodes: dict[str, _Node] = {}

    def add(
        self,
        name: str,
        agent: Any,
        kwargs: Mapping[str, Any] | None = None,
        depends_on: Iterable[str] = (),
    ) -> Self:
        """Add a node. Raises ``graph_refused`` for a name that is taken."""
        if name in self._nodes:
            raise AgentError(
                f"The graph has a node {name} already.",
                do="Give each node its own name.",
                code="graph_refused",
            )
        waits_for = (depends_on,) if isinstance(depends_on, str) else tuple(depends_on)
        self._nodes[name] = _Node(agent, dict(kwargs or {}), waits_for)
        return self

    def validate(self) -> None:
        """Raises ``graph_refused`` when a dependency is missing or nodes wait for each other in a circle."""
        for name, node in self._nodes.items():
            for dependency in node.depends_on:
                if dependency not in self._nodes:
                    raise AgentError(
                        f"{name} depends on {dependency}, which is not in the graph.",
                        do="Add it, or its name.",
                        code="graph_refused",
                    )
        try:
            self._sorter()
        except CycleError as error:
            circle = " → ".join(reversed(error.args[1]))
            raise AgentError(
                f"These nodes wait for each other: {circle}.", do="Remove one.", code="graph_refused"
            ) from None

    def run(self, initial: Mapping[str, Any] | None = None, **more: Any) -> GraphResult:
        """Perform every node once its dependencies have succeeded, in threads of their own.

        ``initial`` (and ``more``) go below the arguments of nodes without dependencies; others get
        ``upstream_slush`` as ``{node name: its slush}``. Raises ``graph_refused`` before anything runs.
        """
        self.validate()
        started = time.perf_counter()
        given = {**(initial or {}), **more}
        done = GraphResult()
        order = self._sorter()
        ended: SimpleQueue[tuple[str, Answer]] = SimpleQueue()
        running = 0
        while order.is_active():
            for name in order.get_ready():
                if all(done.nodes[wait].status == "success" for wait in self._nodes[name].depends_on):
                    self._start(name, self._arguments(name, given, done), ended)
                    running += 1
                else:
                    done.nodes[name] = NodeResult("skipped", error="A node it depends on did not succeed.")
                    order.done(name)
            if running:
                name, (ran, error) = ended.get()
                running -= 1
                if error is not None:
                    raise error
                self._note(name, ran, done)
                order.done(name)
        done.status = _status(done)
        done.total_duration_ms = round((time.perf_counter() - started) * 1000, 3)
        return done

    def _sorter(self) -> TopologicalSorter[str]:
        order = TopologicalSorter({name: node.depends_on for name, node in self._nodes.items()})
        order.prepare()
        return order

    def _arguments(self, name: str, given: Mapping[str, Any], done: GraphResult) -> dict[str, Any]:
        node = self._nodes[name]
        if not node.depends_on:
            return {**given, **node.arguments}
        slush = {wait: done.nodes[wait].data_slush for wait in node.depends_on}
        return {**node.arguments, "upstream_slush": slush}

    def _start(self, name: str, arguments: dict[str, Any], ended: SimpleQueue[tuple[str, Answer]]) -> None:
        agent = self._nodes[name].agent
        elsewhere(
            lambda: run_step(name, agent, arguments, self.node_timeout),
            lambda answer: ended.put((name, answer)),
        )

    @staticmethod
    def _note(name: str, ran: StepOutcome, done: GraphResult) -> None:
        status = "error" if ran.error else "success"
        done.nodes[name] = NodeResult(status, ran.result, ran.slush, ran.duration_ms, ran.error or None)
        if ran.error and done.error is None:
            done.failed_node, done.error = name, ran.error


def _status(done: GraphResult) -> str:
    if done.error is None:
        return "success"
    return "partial" if any(node.status == "success" for node in done.nodes.values()) else "error"
