"""Tools of gateways: an agent that machines behind gateways have, asked at one of them, at all, or at the fastest."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

import orjson

from agents.contract.agent_contract import safe_tool_name
from agents.runtimes.python.pools.runner import AgentResult
from agents.runtimes.python.worker.result_text import OnPiece
from envelopes.codecs.strict_json import too_deep
from envelopes.envelope import ACK, DONE, Envelope, agent_id
from envelopes.errors import ReportableError
from neighborhoods.delivery.broadcast import PeerResult, first_done, gather_all
from neighborhoods.errors import PeerOfflineError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from rappd.dispatch.endpoints import Call, Endpoint
from rappd.dispatch.rights import ANYBODY
from rappd.dispatch.turns import RequestContext
from rappd.federation.gateways import Gateways
from rappd.federation.greetings import Greetings
from rappd.federation.peer_tools import WAIT, PeerToolGateway
from rappd.federation.remote_agents import RemoteAgent, offered_agents
from rappd.organism.organism import RemoteTool

_ANY: dict[str, Any] = {"type": "object", "properties": {}}


class GatewayTools:
    """Makes endpoints of the tools that an agent of ``organism.yaml`` lists. Each call is recorded on the turn's thread."""

    def __init__(
        self, peers: PeerStore, greetings: Greetings, tools: PeerToolGateway, gateways: Gateways
    ) -> None:
        self._peers, self._greetings, self._tools, self._gateways = peers, greetings, tools, gateways

    def endpoints(self, tools: Iterable[RemoteTool]) -> list[Endpoint[Call]]:
        """An endpoint for each tool that has a gateway which is ready."""
        return [self._endpoint(one, peers) for one in tools if (peers := self._ready(one))]

    def _endpoint(self, tool: RemoteTool, peers: Sequence[Peer]) -> Endpoint[Call]:
        known = self._known(tool, peers)
        where = ", ".join(tool.gateways or self._gateways.names())
        description = known.description if known is not None else f"{tool.name} on another machine."
        return Endpoint(
            agent_id(safe_tool_name(tool.name), peers[0].fingerprint),
            "elsewhere",
            where,
            safe_tool_name(tool.name),
            f"By {where}: {description}",
            known.parameters if known is not None else _ANY,
            None,
            ANYBODY,
            partial(self._ask, tool),
        )

    def _known(self, tool: RemoteTool, peers: Sequence[Peer]) -> RemoteAgent | None:
        """The agent as the first of the machines that announced it describes it."""
        for peer in peers:
            for agent in offered_agents(self._greetings.of(peer.fingerprint).agents):
                if agent.name.casefold() == tool.name.casefold():
                    return agent
        return None

    def _ready(self, tool: RemoteTool) -> list[Peer]:
        """The machines behind its gateways, in their order, each once."""
        names = tool.gateways or self._gateways.names()
        keys = dict.fromkeys(key for name in names if (key := self._gateways.fingerprint(name)))
        return [peer for key in keys if (peer := self._peers.get(key)) is not None]

    async def _ask(
        self,
        tool: RemoteTool,
        context: RequestContext,
        arguments: dict[str, Any],
        upstream: dict[str, Any] | None,
        on_piece: OnPiece | None,
    ) -> AgentResult:
        """One call; what goes wrong is its result. The record has each machine's answer from that machine."""
        started = time.monotonic()

        def ended(ok: bool, text: str, slush: object = None) -> AgentResult:
            given = slush if isinstance(slush, dict) and not too_deep(slush) else None
            return AgentResult(ok, text, given, time.monotonic() - started)

        if not context.caller.is_owners:  # the permissions that peers gave this machine are no friend's
            return ended(False, "Other machines are asked for this machine's owner only.")
        peers = self._ready(tool)
        if not peers:
            return ended(False, self._why_none(tool))

        async def ask(peer: Peer) -> Envelope:
            return await self._tools.ask_recorded(
                context, peer, {"agent": tool.name, "args": arguments}, keep=False
            )

        if tool.mode == "all":
            heard = await gather_all(peers, ask, WAIT)
            answers = [_row(tool, one) for one in heard]
            return ended(any("result" in one for one in answers), orjson.dumps(answers).decode())
        if tool.mode == "first-answer-wins":
            winner = (await first_done(peers, ask, _not_needed, WAIT)).winner
            if winner is None or winner.reply is None:
                return ended(False, f"No machine did {tool.name}.")
            return ended(True, _text(winner.reply), winner.reply.data.get("data_slush"))
        try:
            reply = await self._first_here(peers, ask)
        except ReportableError as problem:
            return ended(False, str(problem))
        return ended(reply.verb in (DONE, ACK), _text(reply), reply.data.get("data_slush"))

    async def _first_here(self, peers: Sequence[Peer], ask: Any) -> Envelope:
        """The reply of the first machine that can be reached. Raises ``ReportableError``."""
        for peer in peers[:-1]:
            try:
                found: Envelope = await ask(peer)
            except PeerOfflineError:
                continue
            return found
        last: Envelope = await ask(peers[-1])
        return last

    def _why_none(self, tool: RemoteTool) -> str:
        for name in tool.gateways:
            try:
                self._gateways.peer(name)
            except ReportableError as problem:
                return f"{problem} {problem.do}".strip()
        return "No gateway is ready."


async def _not_needed(peer: Peer) -> None:
    """Nothing more: a recorded question tells its machine that it is not needed when it is cancelled."""
    await asyncio.sleep(0)


def _row(tool: RemoteTool, heard: PeerResult) -> dict[str, Any]:
    sender = agent_id(safe_tool_name(tool.name), heard.peer.fingerprint)
    if heard.reply is not None and heard.outcome == "answered":
        return {"from": sender, "result": _text(heard.reply)}
    answer = _text(heard.reply) if heard.reply is not None else heard.trouble
    return {"from": sender, "error": answer or heard.outcome}


def _text(reply: Envelope) -> str:
    if reply.verb == DONE:
        found = reply.data.get("result", reply.data.get("response", ""))
        return found if isinstance(found, str) else orjson.dumps(found).decode()
    if reply.verb == ACK:
        return "It works on it still; its answer will stand in this conversation's record."
    return str(reply.data.get("msg", "It failed."))
