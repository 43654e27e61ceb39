"""The operation that shows the organism as a graph."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec

from envelopes.envelope import agent_id, brainstem_id
from rappd.daemon.app import Daemon
from rappd.features.operation import OWNER, operation
from rappd.features.organism.graph import (
    CALLS,
    MOST_EVENTS,
    Edge,
    Format,
    Kind,
    Node,
    as_dot,
    as_mermaid,
    graph_of,
)
from rappd.organism.organism import RemoteTool
from rappd.tenants.agent_summary import listing
from rappd.tenants.tenant import HOST

_HOUR = 3600.0
BRAINSTEM = "brainstem"


class GraphOperations:
    """A picture of what exists and of the last hour: names and numbers, nothing of what was said."""

    def __init__(self, daemon: Daemon) -> None:
        self._daemon = daemon

    @operation("organism.graph", "GET", "/organism/graph", right=OWNER)
    async def graph(self, format: Format = "json") -> dict[str, Any]:
        """Shows what exists here and who called whom in the last hour: `nodes` and `edges`; with `mermaid` or `dot` their `text`, too.

        A node has `id`, `name`, `kind` and `state`, an edge `from`, `to`, `kind` and `calls`.
        """
        since = int((time.time() - _HOUR) * 1e6)
        rows = await self._daemon.store.rows(CALLS, (MOST_EVENTS, since))
        calls = [(str(sender), str(recipient), int(count)) for sender, recipient, count in rows]
        graph = graph_of(self._nodes(), self._links(), calls, self._addresses())
        found: dict[str, Any] = msgspec.to_builtins(graph)
        if format != "json":
            found["text"] = as_mermaid(graph) if format == "mermaid" else as_dot(graph)
        return found

    def _nodes(self) -> Iterator[Node]:
        daemon = self._daemon
        yield Node(BRAINSTEM, daemon.host.title, "brainstem", "ready")
        for tenant in daemon.tenants.all():
            if tenant.name != HOST:
                yield Node(f"twin:{tenant.name}", tenant.title, "twin", "ready")
        listeners = {one.name for one in daemon.host.registry.serving() if one.listener is not None}
        driven = {one.name for one in daemon.organism.current.agents or ()}
        for row in listing(daemon.host.registry):
            name = row["name"] or row["file"]
            if row["shadowed_by"] or row["cartridge"] or name in driven:
                continue
            state = "ready" if row["name"] and row["offered"] else "not in organism.yaml"
            kind: Kind = "listener" if name in listeners or row["file"].endswith("_listener.py") else "agent"
            yield Node(f"agent:{name}", name, kind, state if row["name"] else "quarantined")
        for one in daemon.organism.current.agents or ():
            found = daemon.dispatcher.endpoints.named(HOST, one.name)
            yield Node(f"agent:{one.name}", one.name, "agent", "ready" if found else "not ready")
        for gate in daemon.gateways.all():
            yield Node(f"gateway:{gate.gateway.name}", gate.gateway.name, "gateway", gate.state)
        for peer in daemon.federation.peer_store.all():
            yield Node(f"peer:{peer.prefix}", peer.name, "peer", self._presence(peer.fingerprint))
        for timer in daemon.turn_timers.all():
            name = str(timer.detail.get("what") or timer.id)[:60]
            yield Node(f"timer:{timer.id}", name, "timer", "paused" if timer.paused else "ready")

    def _links(self) -> Iterator[Edge]:
        daemon = self._daemon
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

    def _addresses(self) -> dict[str, str]:
        """Nodes by their ids on the wire."""
        daemon, node = self._daemon, self._daemon.identity.fingerprint
        found = {one.id: f"twin:{one.name}" for one in daemon.tenants.all()}
        found[daemon.host.id] = BRAINSTEM
        found |= {
            agent_id(one.tool_name, node): f"agent:{one.name}" for one in daemon.host.registry.serving()
        }
        return found | {
            brainstem_id(peer.fingerprint): f"peer:{peer.prefix}"
            for peer in daemon.federation.peer_store.all()
        }

    def _presence(self, fingerprint: str) -> str:
        machines = self._daemon.federation
        state = machines.parts.presence.presence(fingerprint).state if machines.ready.is_set() else "away"
        return "ready" if state == "here" else state
