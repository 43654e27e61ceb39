"""The HELLO of this machine: a card for unauthenticated callers, capabilities for peers (Rulebook §2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from agents.contract.agent import Agent
from envelopes.envelope import ACK, CANCEL, DONE, ERROR, HELLO, HELP, STREAM
from envelopes.identity.node_card import NodeCard
from rappd.dispatch.rights import Caller
from rappd.tenants.tenant import Tenant
from rappd.tenants.tenants import Tenants

VERBS = [HELLO, HELP, DONE, ERROR, STREAM, CANCEL, ACK]
PROTOCOL = "rappd/1"
MOST_KEPT = 64


class CapabilityCatalog:
    """One catalogue, cut to who asks. What a caller may not use does not exist for him."""

    def __init__(
        self,
        tenants: Tenants,
        name: str,
        introduction: NodeCard,
        *,
        public: Callable[[], list[str]],
        shared_with: Callable[[str], list[str]],
    ) -> None:
        """``public``: the names of the agents that the owner published for everybody to read of.

        ``shared_with``: the neighborhoods that a machine is a member of, too.
        """
        self._public = public
        self._shared_with = shared_with
        self._tenants = tenants
        self._name = name
        self._introduction = introduction
        self._rows: dict[tuple[tuple[str, ...] | None, bool], tuple[int, list[dict[str, Any]]]] = {}

    def hello(self, caller: Caller) -> dict[str, Any]:
        """The data of a HELLO to this caller."""
        agents = self._offered(caller)
        data = {
            "capabilities": [row["name"] for row in agents],
            "verbs": VERBS,
            "name": self._name,
            "protocol": PROTOCOL,
            "introduction": self._introduction.to_json(),
        }
        if caller.peer or caller.caps:
            data["agents"] = agents
            data["twins"] = [tenant.title for tenant in self._twins(caller)]
        if caller.peer and (shared := self._shared_with(caller.peer)):
            data["neighborhoods"] = shared
        if public := self._published():
            data["public"] = public
        return data

    def _published(self) -> list[dict[str, str]]:
        """Name and description of what is public and answers now. To read of it lets nobody call it."""
        names = self._public()
        if not names:
            return []
        serving = self._tenants.host.registry.serving(structural=False)
        return [
            {"name": agent.tool_name, "description": agent.description}
            for agent in serving
            if agent.tool_name in names
        ]

    def _offered(self, caller: Caller) -> list[dict[str, Any]]:
        """The rows of the brainstem's agents; many peers have the same permissions, and all ask again and again."""
        host = self._tenants.host
        key = (caller.caps, host.requests.reaches_for(caller))
        version, rows = self._rows.get(key, (-1, []))
        if version != host.registry.version:
            version, rows = host.registry.version, [_row(agent) for agent in self._usable(host, caller)]
            if len(self._rows) >= MOST_KEPT:
                self._rows.clear()
            self._rows[key] = (version, rows)
        return rows

    async def capabilities(self, ident: str, caller: Caller) -> dict[str, Any] | None:
        """``GET /agents/{id}/capabilities`` (Rulebook §5); None when nothing of it is the caller's to use."""
        name = ident.rpartition("_")[0]
        host = self._tenants.host
        if ident == host.id:
            rows = [_row(agent) for agent in self._usable(host, caller)]
        elif any(agent.tool_name == name for agent in self._usable(host, caller)):
            rows = [_row(agent) for agent in self._usable(host, caller) if agent.tool_name == name]
        else:
            twin = next((one for one in self._twins(caller) if one.id == ident), None)
            rows = [_row(agent) for agent in self._usable(twin, caller)] if twin else []
        if not rows:
            return None
        return {"id": ident, "capabilities": [row["name"] for row in rows], "agents": rows}

    def _usable(self, tenant: Tenant, caller: Caller) -> Iterator[Agent]:
        if caller.caps:
            yield from (
                agent
                for agent in tenant.registry.serving(structural=False)
                if tenant.requests.serves(agent, caller)
            )

    def _twins(self, caller: Caller) -> Iterator[Tenant]:
        for tenant in self._tenants.all():
            if tenant is not self._tenants.host and caller.may(f"{HELLO}.{tenant.name}"):
                yield tenant


def _row(agent: Agent) -> dict[str, Any]:
    return {"name": agent.tool_name, "description": agent.description, "parameters": agent.parameters}
