"""Endpoints of one tenant: its brainstem or twin as a whole, its agents, and who may see and call each."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any

from agents.contract.agent import REACHING, TIMING, Agent, is_structural
from agents.contract.read_only_actions import LOOKING, looking_tool
from agents.runtimes.python.pools.runner import AgentResult
from agents.runtimes.python.worker.result_text import OnPiece
from envelopes.envelope import HELP, agent_id
from envelopes.events import Piece
from rappd.dispatch.endpoints import Call, Endpoint, Newest
from rappd.dispatch.rights import DEVICE, OWNER, PEER, Right
from rappd.dispatch.turns import Handler, RequestContext
from rappd.errors import RappdError
from rappd.tenants.listener_notifications import is_system

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
    description, exposure = f"Asks {title} in words.", PEER(f"{HELP}.{workspace}")
    return Endpoint(id, "tenant", workspace, title, description, _ASKED, _ANSWER, exposure, handler)


def agent_endpoints(
    workspace: str, node: str, agents: Iterable[Agent], call: CallAgent, newest: Newest
) -> list[Endpoint[Call]]:
    """The agents of a tenant in their order, then the structural ones for those who may only look.

    ``newest`` gives the highest version of a listener's payload.
    """
    found, looking = [], []
    for agent in agents:
        if is_system(agent):
            continue
        one = Endpoint[Call](
            agent_id(agent.tool_name, node), "agent", workspace, agent.tool_name, agent.description, agent.parameters,
            None, exposure_of(workspace, agent), partial(call, agent), agent, newest,
        )  # fmt: skip
        found.append(one)
        if agent.trusted and agent.name in LOOKING:
            description, takes = looking_tool(agent.name, agent.description, agent.parameters)
            looking.append(replace(one, kind="look", description=description, input=takes, exposure=LOOKS))
    return found + looking


def exposure_of(workspace: str, agent: Agent) -> Right:
    """Structure is the owner's to change; who speaks to other machines does so for this owner's machines alone."""
    if is_structural(agent.name):
        return OWNER
    if agent.name in TIMING:
        return SETS_TIMERS
    return PEER(f"{HELP}.{workspace}.{agent.tool_name}", mine=agent.name in REACHING)


def with_names(
    ask_peer: Endpoint[Call], description_and_input: tuple[str, dict[str, Any]] | None
) -> Endpoint[Call]:
    """AskPeer with the peers' names in it; not offered where there is no other machine, and it would be in the way."""
    if ask_peer.agent is None or not ask_peer.agent.trusted:
        return ask_peer
    if description_and_input is None:
        return replace(ask_peer, kind="spare")
    description, form = description_and_input
    return replace(ask_peer, description=description, input=form)


async def called(one: Endpoint[Call], context: RequestContext, arguments: dict[str, Any]) -> dict[str, Any]:
    """The DONE's data of a call of what is of no tenant. Raises ``RappdError``."""
    emit = context.emit
    on_piece = (lambda text: emit(Piece(context.envelope.id, one.name, text))) if emit else None
    ran = await one.handler(context, arguments, None, on_piece)
    if not ran.ok:
        raise RappdError(ran.result, code="agent")
    return {"result": ran.result}
