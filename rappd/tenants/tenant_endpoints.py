"""Endpoints of one tenant: its brainstem or twin as a whole, its agents, and who may see and call each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from agents.contract.agent import REACHING, TIMING, Agent, is_structural
from agents.contract.looking import LOOKING, looking_tool
from agents.runtime.result_text import OnPiece
from agents.runtime.runner import AgentResult
from envelopes.envelope import HELP, agent_id
from rappd.dispatch.endpoints import Call, Endpoint
from rappd.dispatch.rights import DEVICE, OWNER, PEER, Right
from rappd.dispatch.turns import Handler, RequestContext
from rappd.tenants.system_messages import is_system

LOOK = "LOOK"
"""The capability to see this machine's twins and machines; it counts for phones alone."""
LOOKS = DEVICE(LOOK)
SETS_TIMERS = PEER("TIMER")
"""The right to set timers: this machine's own callers have it, of others those with the capability."""
_ASKED: dict[str, Any] = {
    "type": "object",
    "properties": {"user_input": {"type": "string"}},
    "required": ["user_input"],
}
_ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"response": {"type": "string"}, "agent_logs": {"type": "string"}},
    "required": ["response"],
}

CallAgent = Callable[
    [Agent, RequestContext, dict[str, Any], dict[str, Any] | None, OnPiece | None], Awaitable[AgentResult]
]
"""``TenantRequestHandler.call``."""


def whole_endpoint(workspace: str, id: str, title: str, handler: Handler) -> Endpoint[Handler]:
    """A brainstem or a twin, which is asked in words."""
    told, exposure = f"Asks {title} in words.", PEER(f"{HELP}.{workspace}")
    return Endpoint(id, "tenant", workspace, title, told, _ASKED, _ANSWER, exposure, handler)


def agent_endpoints(
    workspace: str, node: str, agents: Iterable[Agent], call: CallAgent
) -> list[Endpoint[Call]]:
    """The agents of a tenant in their order, then the structural ones for those who may only look."""
    found, looking = [], []
    for agent in agents:
        if is_system(agent):
            continue
        one = Endpoint[Call](
            agent_id(agent.tool_name, node), "agent", workspace, agent.tool_name, agent.description, agent.parameters,
            None, exposure_of(workspace, agent), partial(call, agent), agent,
        )  # fmt: skip
        found.append(one)
        if agent.trusted and agent.name in LOOKING:
            told, takes = looking_tool(agent.name, agent.description, agent.parameters)
            looking.append(replace(one, kind="look", description=told, input=takes, exposure=LOOKS))
    return found + looking


def exposure_of(workspace: str, agent: Agent) -> Right:
    """Structure is the owner's to change; who speaks to other machines does so for this owner's machines alone."""
    if is_structural(agent.name):
        return OWNER
    if agent.name in TIMING:
        return SETS_TIMERS
    return PEER(f"{HELP}.{workspace}.{agent.tool_name}", mine=agent.name in REACHING)
