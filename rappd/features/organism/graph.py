"""The graph of the organism: what exists here, who may ask whom, and how often that was in the last hour."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Literal

import msgspec

Kind = Literal["brainstem", "twin", "listener", "agent", "gateway", "peer", "timer", "person"]
Format = Literal["json", "mermaid", "dot"]

CALLS = """SELECT sender, recipient, count(*) FROM
    (SELECT sender, recipient, verb, at FROM events ORDER BY seq DESC LIMIT ?)
    WHERE at >= ? AND verb = 'HELP' GROUP BY sender, recipient"""
"""Askers, asked and counts since a moment in µs, within the latest events: an index for it would cost every turn."""
MOST_EVENTS = 20_000


class Node(msgspec.Struct, frozen=True):
    """Something that exists. ``id`` is its kind and its name or key; ``state`` is "ready" or why it is not."""

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
    calls: Iterable[tuple[str, str, int]],
    addresses: Mapping[str, str],
) -> Graph:
    """The whole: ``calls`` are (sender, recipient, how often) by ids of the wire, which ``addresses`` names as nodes.

    A sender that is no node is a person or a program that asked here.
    """
    known = {one.id: one for one in nodes}
    counted: Counter[tuple[str, str]] = Counter()
    for sender, recipient, count in calls:
        if (target := addresses.get(recipient)) is not None:
            counted[addresses.get(sender, PERSON.id), target] += count
    edges = {(one.source, one.target): one for one in links if one.source in known and one.target in known}
    if any(source == PERSON.id for source, _ in counted):
        known = {PERSON.id: PERSON, **known}
    for (source, target), count in counted.items():
        before = edges.get((source, target), Edge(source, target, "asks"))
        edges[source, target] = msgspec.structs.replace(before, calls=count)
    return Graph(list(known.values()), list(edges.values()))


PERSON = Node("person", "People and programs", "person", "ready")
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
        told = edge.kind + (f" {edge.calls}" if edge.calls else "")
        arrow = "-->" if edge.calls or edge.kind != "asks" else "-.->"
        lines.append(f'  {names[edge.source]} {arrow}|"{told}"| {names[edge.target]}')
    return "\n".join(lines) + "\n"


def as_dot(graph: Graph) -> str:
    """The graph in the language of Graphviz."""
    lines = ["digraph organism {", "  rankdir=LR;"]
    lines += [f'  "{_plain(one.id)}" [label="{_plain(_label(one))}"];' for one in graph.nodes]
    for edge in graph.edges:
        told = edge.kind + (f" {edge.calls}" if edge.calls else "")
        lines.append(f'  "{_plain(edge.source)}" -> "{_plain(edge.target)}" [label="{told}"];')
    return "\n".join([*lines, "}"]) + "\n"


def _label(node: Node) -> str:
    state = "" if node.state == "ready" else f", {node.state}"
    return f"{node.name} ({node.kind}{state})"


def _plain(text: str) -> str:
    """Text inside double quotes, for both languages: names may be a stranger's."""
    return re.sub(r'[\x00-\x1f"\\<>&#;`|]', " ", text)
