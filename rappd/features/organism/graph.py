"""The graph of the organism: what exists here, who may ask whom, and how often that was in the last hour."""

from __future__ import annotations

import asyncio
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, NotRequired, TypedDict

import msgspec

from agents.contract.agent import Agent
from agents.contract.may_run import SHIPPED
from envelopes.envelope import agent_id, brainstem_id
from rappd.daemon.app import Daemon
from rappd.features.operation import OWNER, operation
from rappd.organism.organism import RemoteTool
from rappd.tenants.agent_summary import listing
from rappd.tenants.tenant import HOST, Tenant
from twins.workspace.listing import scan
from twins.workspace.twin import Twin

_Kind = Literal["brainstem", "twin", "listener", "agent", "gateway", "peer", "timer", "person"]
_Format = Literal["json", "mermaid", "dot"]

_CALLS = """SELECT workspace, sender, recipient, agent, count(*) FROM
    (SELECT thread, sender, recipient, verb, at, iif(verb = 'HELP' AND at >= ?2 AND json_valid(CAST(body AS TEXT)),
        json_extract(CAST(body AS TEXT), '$.data.agent'), NULL) AS agent
        FROM events ORDER BY seq DESC LIMIT ?1)
    JOIN threads ON threads.number = thread
    WHERE at >= ?2 AND verb = 'HELP' GROUP BY workspace, sender, recipient, agent"""
"""Workspaces, askers, asked, the agent that a HELP names, and counts since a moment in µs.

Within the latest events: an index for it would cost every turn.
"""
_MOST_EVENTS = 20_000
_HOUR = 3600.0
_MOST_TWINS = 100
"""In a picture; those that are awake come first."""
_MOST_OF_TWIN = 50
BRAINSTEM = "brainstem"


class OrganismGraph(TypedDict):
    """The graph of the organism; ``text`` is there for another format than JSON."""

    nodes: list[Node]
    edges: list[Edge]
    text: NotRequired[str]


class GraphOperations:
    """A picture of what exists and of the last hour: names and numbers, nothing of what was said."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    @operation("organism.graph", "GET", "/organism/graph", right=OWNER)
    async def graph(self, format: _Format = "json") -> OrganismGraph:
        """Shows what exists here and who called whom in the last hour: `nodes` and `edges`; with `mermaid` or `dot` their `text`, too.

        A node has `id`, `name`, `kind` and `state`, an edge `from`, `to`, `kind` and `calls`.
        """
        await self._daemon.host.described()
        since = int((time.time() - _HOUR) * 1e6)
        rows = await self._daemon.store.rows(_CALLS, (_MOST_EVENTS, since))
        twins = (await asyncio.to_thread(scan, self._daemon.tenants.layout)).twins
        graph = graph_of(self._nodes(twins), self._links(), _Addresses(self._daemon, twins).calls(rows))
        found: OrganismGraph = msgspec.to_builtins(graph)
        if format != "json":
            found["text"] = as_mermaid(graph) if format == "mermaid" else as_dot(graph)
        return found

    def _nodes(self, twins: Sequence[Twin]) -> Iterator[Node]:
        daemon = self._daemon
        yield Node(BRAINSTEM, daemon.host.title, "brainstem", "ready")
        for twin in sorted(twins, key=lambda one: daemon.tenants.opened(one.key) is None)[:_MOST_TWINS]:
            tenant = daemon.tenants.opened(twin.key)
            yield Node(f"twin:{twin.key}", twin.name, "twin", "asleep" if tenant is None else "ready")
        for tenant, agent in self._of_twins():
            kind: _Kind = "agent" if agent.listener is None else "listener"
            name = f"{agent.name} of {tenant.title}"
            yield Node(f"twin:{tenant.name}/{agent.name}", name, kind, "ready")
        listeners = {one.name for one in daemon.host.registry.serving() if one.listener is not None}
        driven = {one.name for one in daemon.organism.current.agents or ()}
        for row in listing(daemon.host.registry):
            name = row["name"] or row["file"]
            if row["shadowed_by"] or row["cartridge"] or name in driven:
                continue
            state = "ready" if row["name"] and row["offered"] else "not in organism.yaml"
            kind = "listener" if name in listeners or row["file"].endswith("_listener.py") else "agent"
            yield Node(f"agent:{name}", name, kind, state if row["name"] else "quarantined")
        for one in daemon.organism.current.agents or ():
            found = daemon.dispatcher.endpoints.named(HOST, one.name)
            yield Node(f"agent:{one.name}", one.name, "agent", "ready" if found else "not ready")
        for gate in daemon.gateways.all():
            yield Node(f"gateway:{gate.gateway.name}", gate.gateway.name, "gateway", gate.state)
        for peer in daemon.machines.peer_store.all():
            yield Node(f"peer:{peer.prefix}", peer.name, "peer", self._presence(peer.fingerprint))
        for timer in daemon.turn_timers.all():
            name = str(timer.detail.get("what") or timer.id)[:60]
            yield Node(f"timer:{timer.id}", name, "timer", "paused" if timer.paused else "ready")

    def _of_twins(self) -> Iterator[tuple[Tenant, Agent]]:
        """Agents and listeners that are a twin's own, of those that are awake."""
        for tenant in self._daemon.tenants.all():
            if tenant.name != HOST:
                own = [one for one in tenant.registry.serving() if one.origin != SHIPPED]
                yield from ((tenant, agent) for agent in own[:_MOST_OF_TWIN])

    def _links(self) -> Iterator[Edge]:
        daemon = self._daemon
        for tenant, agent in self._of_twins():
            yield Edge(f"twin:{tenant.name}", f"twin:{tenant.name}/{agent.name}", "asks")
        for agent in daemon.host.registry.serving():
            yield Edge(BRAINSTEM, f"agent:{agent.name}", "asks")
        for one in daemon.organism.current.agents or ():
            yield Edge(BRAINSTEM, f"agent:{one.name}", "asks")
            for tool in one.tools:
                if isinstance(tool, RemoteTool):
                    for gateway in tool.gateways or [each.name for each in daemon.organism.current.gateways]:
                        yield Edge(f"agent:{one.name}", f"gateway:{gateway}", "asks")
                else:
                    yield Edge(f"agent:{one.name}", f"agent:{tool}", "asks")
        for gate in daemon.gateways.all():
            if gate.peer is not None:
                yield Edge(f"gateway:{gate.gateway.name}", f"peer:{gate.peer.prefix}", "stands for")
        for row in daemon.turn_timers.all():
            workspace = row.detail.get("workspace", HOST)
            yield Edge(f"timer:{row.id}", BRAINSTEM if workspace == HOST else f"twin:{workspace}", "wakes")

    def _presence(self, fingerprint: str) -> str:
        state = self._daemon.machines.presence.presence(fingerprint).state
        return "ready" if state == "here" else state


class _Addresses:
    """Nodes by their ids on the wire. Agents of the same name, of this machine and its twins, have the same one."""

    def __init__(self, daemon: Daemon, twins: Sequence[Twin]) -> None:
        self._node = daemon.identity.fingerprint[:16]
        self._twins = {one.key: one for one in twins}
        self._open = {one.name: one for one in daemon.tenants.all()}
        self._everywhere = {daemon.host.id: Node(BRAINSTEM, daemon.host.title, "brainstem", "ready")}
        for peer in daemon.machines.peer_store.all():
            shown = Node(f"peer:{peer.prefix}", peer.name, "peer", "ready")
            self._everywhere[brainstem_id(peer.fingerprint)] = shown
        self._agents = {
            (workspace, agent_id(agent.tool_name, self._node)): agent
            for workspace, tenant in self._open.items()
            for agent in tenant.serving()
        }

    def calls(self, rows: Iterable[tuple[Any, ...]]) -> Iterator[tuple[Node, Node, int]]:
        """The number of calls between each two, of rows of ``_CALLS``."""
        for workspace, sender, recipient, agent, count in rows:
            asked = self._of(workspace, recipient)
            named = agent_id(agent, self._node) if isinstance(agent, str) else ""
            if (
                asked is not None
                and asked.kind in ("brainstem", "twin")
                and (workspace, named) in self._agents
            ):
                asked = self._of(
                    workspace, named
                )  # asked for by its name; any other name is the caller's word alone
            if asked is not None:
                yield self._of(workspace, sender) or PERSON, asked, count

    def _of(self, workspace: str, id: str) -> Node | None:
        """The node that an id means in a thread of ``workspace``."""
        name, _, node = id.rpartition("_")
        if id in self._everywhere or node != self._node:
            return self._everywhere.get(id)
        for twin in self._twins.values():
            if name.endswith(f"-{twin.key[:8]}"):
                return Node(f"twin:{twin.key}", twin.name, "twin", self._state(twin.key))
        agent = self._agents.get((workspace, id))
        kind: _Kind = "agent" if agent is None or agent.listener is None else "listener"
        if agent is not None:
            name = agent.name
        if (of := self._twins.get(workspace)) is not None:
            return Node(f"twin:{of.key}/{name}", f"{name} of {of.name}", kind, self._state(of.key))
        return Node(f"agent:{name}", name, kind, "ready") if agent is not None else None

    def _state(self, key: str) -> str:
        return "ready" if key in self._open else "asleep"


class Node(msgspec.Struct, frozen=True):
    """A node of the picture. ``id`` is its kind and its name or key; ``state`` is "ready" or why it is not."""

    id: str
    name: str
    kind: _Kind
    state: str


class Edge(msgspec.Struct, frozen=True, rename={"source": "from", "target": "to"}):
    """Two nodes. ``kind``: ``asks`` (it may, or did), ``stands for`` (a gateway for its peer), ``wakes`` (a timer)."""

    source: str
    target: str
    kind: Literal["asks", "stands for", "wakes"]
    calls: int = 0


class _Graph(msgspec.Struct, frozen=True):
    """Nodes in their order, and edges between them."""

    nodes: list[Node]
    edges: list[Edge]


def graph_of(
    nodes: Iterable[Node],
    links: Iterable[Edge],
    calls: Iterable[tuple[Node, Node, int]],
) -> _Graph:
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
    return _Graph(list(known.values()), list(edges.values()))


PERSON = Node("person", "People and programs", "person", "ready")
"""In the place of each sender that is no other node."""
_SHAPES: dict[str, tuple[str, str]] = {
    "brainstem": ('(["', '"])'),
    "gateway": ('[/"', '"/]'),
    "peer": ('[["', '"]]'),
    "timer": ('(("', '"))'),
}


def as_mermaid(graph: _Graph) -> str:
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


def as_dot(graph: _Graph) -> str:
    """The graph in the language of Graphviz."""
    lines = ["digraph organism {", "  rankdir=LR;"]
    lines += [f'  "{_plain(one.id)}" [label="{_plain(_label(one))}"];' for one in graph.nodes]
    for edge in graph.edges:
        label = edge.kind + (f" {edge.calls}" if edge.calls else "")
        lines.append(f'  "{_plain(edge.source)}" -> "{_plain(edge.target)}" [label="{label}"];')
    return "\n".join([*lines, "}"]) + "\n"


_STATES = {"asleep": "stopped"}


def _label(node: Node) -> str:
    state = "" if node.state == "ready" else f", {_STATES.get(node.state, node.state)}"
    return f"{node.name} ({node.kind}{state})"


def _plain(text: str) -> str:
    """Text inside double quotes, for both languages: names may be a stranger's."""
    return re.sub(r'[\x00-\x1f"\\<>&#;`|]', " ", text)
