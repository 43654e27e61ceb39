"""The parts of a tenant that its request handler, its callbacks and its agent administration work with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agents.brainstem.turn import Brainstem
from agents.contract.agent import Agent
from agents.contract.registry import AgentRegistry
from agents.runtimes.python.pools.runner import AgentRunner
from rappd.dispatch.endpoints import Call, Endpoint
from rappd.dispatch.turns import RequestContext
from rappd.notices.notices import Notices
from rappd.organism.organism import Organism, RemoteTool
from rappd.organism.schemas import ListenerSchemas
from rappd.tenants.listener_states import ListenerStates
from rappd.tenants.model_choices import ModelChoices
from rappd.tenants.primitives import DelayGateway
from rappd.tenants.rapplication_services import WorkspaceServices
from twins.trust.trust import Trust
from twins.workspace.agent_files import AgentFiles
from twins.workspace.workspace import Workspace

Perform = Callable[[str, dict[str, Any]], Awaitable[Any]]


GatewayEndpoints = Callable[[Iterable[RemoteTool]], list[Endpoint[Call]]]
"""Endpoints of tools that machines behind gateways have, of those that can be asked now."""


class PeerGateway(Protocol):
    """Other machines, as turns of a tenant reach them."""

    async def perform(self, context: RequestContext, operation: str, arguments: dict[str, Any]) -> Any:
        """``peers.list`` or ``peers.ask``. Raises ``ReportableError``."""
        ...

    def ask_peer(self) -> tuple[str, dict[str, Any]] | None:
        """Description and parameters of AskPeer that name the peers; None where there are none."""
        ...


class TimerGateway(Protocol):
    """Timers, as turns of a tenant set them."""

    async def perform(self, context: RequestContext, operation: str, arguments: dict[str, Any]) -> Any:
        """``timers.ask``. Raises ``ReportableError``."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantContext:
    """Parts and actions of one tenant.

    ``peers``, ``timers`` and ``delays`` are asked each time: they come later than the tenant is made.
    """

    name: str
    id: str
    node: str
    workspace: Workspace
    files: AgentFiles
    trust: Trust
    registry: AgentRegistry
    runner: AgentRunner
    services: WorkspaceServices
    brainstem: Brainstem
    notices: Notices
    peers: Callable[[], PeerGateway | None]
    gateway_tools: GatewayEndpoints
    timers: Callable[[], TimerGateway | None]
    delays: Callable[[], DelayGateway | None]
    refresh: Callable[[], Awaitable[object]]
    reload_variables: Callable[[], Awaitable[None]]
    describe: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
    test: Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
    heard: Callable[[str], None] | None
    perform: Perform
    models: ModelChoices
    schemas: ListenerSchemas
    states: ListenerStates
    private_root: Path
    what_exists: Callable[[], Organism]
    rounds: Callable[[], int]
    is_of_buddies: Callable[[Agent], bool]
