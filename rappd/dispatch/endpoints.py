"""The registry of all that can be called here: brainstems, twins, their agents, workflows, and agents of other machines.

A tenant publishes what it has whenever its agents change, and withdraws it when it is closed; other machines' agents
are asked for, since they come and go with their machines, and so are workflows, which are files. Tools of a turn,
capabilities and cards for peers, tools of MCP, and agents that may be published are lists from here, cut to what a
caller is admitted to.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Literal, TypeVar

from agents.contract.agent import Agent
from agents.runtimes.python.pools.runner import AgentResult
from agents.runtimes.python.worker.result_text import OnPiece
from envelopes.payloads.form import PayloadForm
from envelopes.payloads.from_schema import form_of_agent
from rappd.dispatch.rights import Caller, Right
from rappd.dispatch.turns import Handler, RequestContext

Call = Callable[
    [RequestContext, dict[str, Any], dict[str, Any] | None, OnPiece | None], Awaitable[AgentResult]
]
"""(turn, arguments, upstream slush, on_piece) -> the result; what goes wrong is the result, too."""

WORKFLOW = "workflow."
"""Begins the names of workflows: no agent's name has a dot in it."""
Look = Callable[[], Awaitable[None]]
Newest = Callable[[PayloadForm], int]
H = TypeVar("H")
Kind = Literal["tenant", "agent", "look", "spare", "elsewhere", "workflow"]
"""``tenant``: a brainstem or a twin as a whole. ``look``: a structural agent, as far as it only looks. ``spare``: an
agent that is not offered to a turn. ``elsewhere``: an agent of another machine. ``workflow``: one that a program runs as a whole."""


def _first(form: PayloadForm) -> int:
    return 1


@dataclass(frozen=True)
class Endpoint(Generic[H]):
    """An agent, a brainstem or a twin that can be called. ``id`` is its address on the wire, ``workspace`` the tenant that it is of.

    ``input`` and ``output`` are JSON schemas; ``output`` is None where an answer is text. ``exposure``: who may see
    and call it. ``agent``: the loaded agent behind it, where it is one of this machine. ``newest``: the highest version
    of its payload, of which it may have got schemas after it was published.
    """

    id: str
    kind: Kind
    workspace: str
    name: str
    description: str
    input: dict[str, Any]
    output: dict[str, Any] | None
    exposure: Right
    handler: H
    agent: Agent | None = None
    newest: Newest = _first

    @cached_property
    def definition(self) -> dict[str, Any]:
        """The OpenAI tool definition."""
        return {"type": "function", "function": self.row}

    @cached_property
    def row(self) -> dict[str, Any]:
        """Name, description and parameters, as capabilities list them."""
        return {"name": self.name, "description": self.description, "parameters": self.input}

    @cached_property
    def payload(self) -> PayloadForm | None:
        """The form of what a listener, or an agent, takes as XML."""
        if self.agent is not None and self.agent.listener is not None:
            return self.agent.listener
        return form_of_agent(self.name, self.description, self.input)

    def serves(self, namespace: str, root: str) -> bool:
        """True for a payload of that root, in the namespace of one of its versions, or in none."""
        form = self.payload
        return form is not None and form.serves(namespace, root, self.newest(form))

    @property
    def operators(self) -> bool:
        """True for what no model server may call that the operator did not configure."""
        return self.kind == "look" or self.exposure.kind == "owner"


_Names = tuple[dict[str, Endpoint[Call]], dict[str, Endpoint[Call]]]
"""Agents of a tenant by tool name, and by their own name in small letters."""
_NO_NAMES: _Names = ({}, {})


class Endpoints:
    """The registry. All calls come from the event loop."""

    def __init__(self) -> None:
        self._tenants: dict[str, Endpoint[Handler]] = {}
        self._agents: dict[str, tuple[Endpoint[Call], ...]] = {}
        self._by_name: dict[str, _Names] = {}
        self._sources: list[tuple[Right, Callable[[], Sequence[Endpoint[Call]]], Look | None]] = []

    def publish(self, tenant: Endpoint[Handler], agents: Sequence[Endpoint[Call]]) -> None:
        """All that can be called of one tenant, in place of what was before."""
        self._tenants[tenant.workspace] = tenant
        self._agents[tenant.workspace] = tuple(agents)
        own = [one for one in reversed(agents) if one.kind == "agent"]  # the first of a name counts
        folded = {one.agent.name.casefold(): one for one in own if one.agent is not None}
        self._by_name[tenant.workspace] = {one.name: one for one in own}, folded

    def withdraw(self, workspace: str) -> None:
        """Nothing of a tenant can be called any more."""
        self._tenants.pop(workspace, None)
        self._agents.pop(workspace, None)
        self._by_name.pop(workspace, None)

    def add_source(
        self, exposure: Right, source: Callable[[], Sequence[Endpoint[Call]]], *, look: Look | None = None
    ) -> None:
        """``source`` gives what is here now and of no tenant, for those whom ``exposure`` admits; ``look`` reads it anew."""
        self._sources.append((exposure, source, look))

    async def look(self) -> None:
        """Reads anew what of it is on the disk alone."""
        for _, _, look in self._sources:
            if look is not None:
                await look()

    def tenants(self) -> list[Endpoint[Handler]]:
        """The brainstem and every open twin."""
        return list(self._tenants.values())

    def published(self, workspace: str) -> tuple[Endpoint[Call], ...]:
        """Agents of a tenant in alphabetical order, then what only looks: another tuple after each change."""
        return self._agents.get(workspace, ())

    def agents(self, workspace: str, caller: Caller) -> list[Endpoint[Call]]:
        """The agents of a workspace that a caller may see and call."""
        return [one for one in self.published(workspace) if one.exposure.admits(caller)]

    def named(self, workspace: str, name: str) -> Endpoint[Call] | None:
        """The agent called ``name`` in a tenant: by its tool name, else by its own name in any case."""
        exact, folded = self._by_name.get(workspace, _NO_NAMES)
        return exact.get(name) or folded.get(name.casefold())

    def listener(self, workspace: str, namespace: str, root: str, caller: Caller) -> Endpoint[Call] | None:
        """The one listener of a tenant that serves such a payload and that a caller may use.

        An agent serves one in the namespace that is made of its name.
        """
        return the_server(self.agents(workspace, caller), namespace, root)

    def elsewhere(self, caller: Caller) -> Iterator[Endpoint[Call]]:
        """Agents of other machines that a caller may have called from here."""
        return (one for one in self.of_sources(caller) if one.kind == "elsewhere")

    def of_sources(self, caller: Caller) -> Iterator[Endpoint[Call]]:
        """All that is of no tenant and that a caller may call: agents of other machines, workflows."""
        for exposure, source, _ in self._sources:
            if exposure.admits(caller):
                yield from source()

    async def found_in_sources(self, name: str, caller: Caller) -> Endpoint[Call] | None:
        """The endpoint of a source that is called ``name``; the sources are read anew where it is not known."""
        for known in (True, False):
            if not known:
                await self.look()
            for one in self.of_sources(caller):
                if one.name == name:
                    return one
        return None


def the_server(among: Iterable[Endpoint[Call]], namespace: str, root: str) -> Endpoint[Call] | None:
    """The one of these that serves such a payload; None where there is none, or more than one."""
    found = [
        one
        for one in among
        if one.agent is not None
        and one.kind == "agent"
        and (namespace or one.agent.listener is not None)
        and one.serves(namespace, root)
    ]
    return found[0] if len(found) == 1 else None
