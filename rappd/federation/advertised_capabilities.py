"""The HELLO of this machine: a card for unauthenticated callers, capabilities for peers (Rulebook §2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from envelopes.envelope import ACK, CANCEL, DONE, ERROR, HELLO, HELP, STREAM
from envelopes.identity.node_card import NodeCard
from rappd.dispatch.endpoints import Endpoint, Endpoints
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Handler
from rappd.tenants.tenant import HOST

VERBS = [HELLO, HELP, DONE, ERROR, STREAM, CANCEL, ACK]
PROTOCOL = "rappd/1"


class CapabilityCatalog:
    """The registry of what can be called, cut to who asks. What a caller may not use does not exist for that caller."""

    def __init__(
        self,
        endpoints: Endpoints,
        name: str,
        introduction: Callable[[], NodeCard],
        *,
        public: Callable[[], list[str]],
        shared_with: Callable[[str], list[str]],
    ) -> None:
        """``introduction`` gives this machine's own card. ``public``: the names of the agents that the owner published for everybody to read of.

        ``shared_with``: the neighborhoods that a machine is a member of, too.
        """
        self._public = public
        self._shared_with = shared_with
        self._endpoints = endpoints
        self._name = name
        self._introduction = introduction

    def hello(self, caller: Caller) -> dict[str, Any]:
        """The data of a HELLO to this caller."""
        agents = self._usable(HOST, caller)
        data = {
            "capabilities": [row["name"] for row in agents],
            "verbs": VERBS,
            "name": self._name,
            "protocol": PROTOCOL,
            "introduction": self._introduction().to_json(),
        }
        if caller.peer or caller.caps:
            data["agents"] = agents
            data["twins"] = [one.name for one in self._tenants(caller) if one.workspace != HOST]
        if caller.peer and (shared := self._shared_with(caller.peer)):
            data["neighborhoods"] = shared
        if public := self._published():
            data["public"] = public
        return data

    def _published(self) -> list[dict[str, str]]:
        """Name and description of what is public and answers now. To read of it lets nobody call it."""
        names = self._public()
        return [
            {"name": one.name, "description": one.description}
            for one in self._endpoints.published(HOST)
            if one.name in names and one.exposure.kind == "peer"
        ]

    async def capabilities(self, ident: str, caller: Caller) -> dict[str, Any] | None:
        """``GET /agents/{id}/capabilities`` (Rulebook §5); None when nothing of it is the caller's to use."""
        whole = next((one.workspace for one in self._tenants(caller) if one.id == ident), "")
        rows = self._usable(whole or HOST, caller)
        if not whole:
            rows = [row for row in rows if row["name"] == ident.rpartition("_")[0]]
        if not rows:
            return None
        return {"id": ident, "capabilities": [row["name"] for row in rows], "agents": rows}

    def _usable(self, workspace: str, caller: Caller) -> list[dict[str, Any]]:
        return [one.row for one in self._endpoints.agents(workspace, caller)] if caller.caps else []

    def _tenants(self, caller: Caller) -> list[Endpoint[Handler]]:
        """The brainstem, and the twins of which a caller may know."""
        found = self._endpoints.tenants()
        return [one for one in found if one.workspace == HOST or caller.may(f"{HELLO}.{one.workspace}")]
