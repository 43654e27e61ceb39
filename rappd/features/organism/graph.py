"""The graph of the organism: what exists here, who may ask whom, and how often that was in the last hour."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import Literal

import msgspec

Kind = Literal["brainstem", "twin", "listener", "agent", "gateway", "peer", "timer", "person"]
Format = Literal["json", "mermaid", "dot"]

CALLS = """SELECT workspace, sender, recipient, agent, count(*) FROM
    (SELECT thread, sender, recipient, verb, at, iif(verb = 'HELP' AND at >= ?2 AND json_valid(CAST(body AS TEXT)),
        json_extract(CAST(body AS TEXT), '$.data.agent'), NULL) AS agent
        FROM events ORDER BY seq DESC LIMIT ?1)
    JOIN threads ON threads.number = thread
    WHERE at >= ?2 AND verb = 'HELP' GROUP BY workspace, sender, recipient, agent"""
"""Workspaces, askers, asked, the agent that a HELP names, and counts since a moment in µs.

Within the latest events: an index for it would cost every turn.
"""
MOST_EVENTS = 20_000


class Node(msgspec.Struct, frozen=True):
    """A node of the picture. ``id`` is its kind and its name or key; ``state`` is "ready" or why it is not."""

    id: str
    name: str
    kind: Kind
    state: str


class Edge(msgspec.Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """Two nodes. ``kind``: ``asks`` (it may, or did), ``stands for`` (a gateway for its peer), ``wakes`` (a timer)."""

    source: str
    target: str
    kind: Literal["asks", "stands for", "wakes"]
    calls: int = 0


class Graph(msgspec.Struct, frozen=True):
    """Nodes in their order, and edges between them."""

    nodes: list[Node]
    edges: list[Edge]


def graph_of(
    nodes: Iterable[Node],
    links: Iterable[Edge],
    calls: Iterable[tuple[Node, Node, int]],
) -> Graph:
    """The whole: ``calls`` are askers, asked and how often; such a node is in it whether it is among ``nodes`` or not."""
    known = {one.id: one for one in nodes}
    counted: Counter[tuple[str, str]] = Counter()
    for source, target, count in calls:
        for one in (source, target):
            known.setdefault(one.id, one)
        counted[source.id, target.id] += count
    edges = {(one.source, one.target): one for one in links if one.source in known and one.target in known}
    if PERSON.id in known:
        known = {PERSON.id: PERSON, **known}
    for (asking, asked), count in counted.items():
        before = edges.get((asking, asked), Edge(asking, asked, "asks"))
        edges[asking, asked] = msgspec.structs.replace(before, calls=count)
    return Graph(list(known.values()), list(edges.values()))


PERSON = Node("person", "People and programs", "person", "ready")
"""In the place of each sender that is no other node."""
_SHAPES: dict[str, tuple[str, str]] = {
    "brainstem": ('(["', '"])'),
    "gateway": ('[/"', '"/]'),
    "peer": ('[["', '"]]'),
    "timer": ('(("', '"))'),
}


def as_mermaid(graph: Graph) -> str:
    """The graph as a Mermaid flowchart."""
    names = {one.id: f"n{number}" for number, one in enumerate(graph.nodes)}
    lines = ["flowchart LR"]
    for node in graph.nodes:
        before, after = _SHAPES.get(node.kind, ('["', '"]'))
        lines.append(f"  {names[node.id]}{before}{_plain(_label(node))}{after}")
    for edge in graph.edges:
        label = edge.kind + (f" {edge.calls}" if edge.calls else "")
        arrow = "-->" if edge.calls or edge.kind != "asks" else "-.->"
        lines.append(f'  {names[edge.source]} {arrow}|"{label}"| {names[edge.target]}')
    return "\n".join(lines) + "\n"


def as_dot(graph: Graph) -> str:
    """The graph in the language of Graphviz."""
    lines = ["digraph organism {", "  rankdir=LR;"]
    lines += [f'  "{_plain(one.id)}" [label="{_plain(_label(one))}"];' for one in graph.nodes]
    for edge in graph.edges:
        label = edge.kind + (f" {edge.calls}" if edge.calls else "")
        lines.append(f'  "{_plain(edge.source)}" -> "{_plain(edge.target)}" [label="{label}"];')
    return "\n".join([*lines, "}"]) + "\n"


def _label(node: Node) -> str:
    state = "" if node.state == "ready" else f", {node.state}"
    return f"{node.name} ({node.kind}{state})"


def _plain(text: str) -> str:
    """Text inside double quotes, for both languages: names may be a stranger's."""
    return re.sub(r'[\x00-\x1f"\\<>&#;`|]', " ", text)
