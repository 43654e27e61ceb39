"""Other machines within a turn: AskPeer, and peers' agents as tools where the owner offers them."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from typing import Any

from agents.contract.agent_contract import safe_tool_name
from agents.runtimes.python.pools.runner import AgentResult
from agents.runtimes.python.worker.result_text import OnPiece
from envelopes.codecs.strict_json import too_deep
from envelopes.envelope import ACK, DONE, ERROR, PATH, TRACEPARENT, Envelope, agent_id, brainstem_id, is_uuid
from envelopes.errors import ReportableError
from neighborhoods.discovery.presence import Presence
from neighborhoods.errors import DeclinedError, NotPairedError, PeerOfflineError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.endpoints import Call, Endpoint
from rappd.dispatch.rights import ANYBODY
from rappd.dispatch.turns import RequestContext
from rappd.errors import NotFoundError, RefusedError
from rappd.features.calls.call_forms import call_data, trace_of, with_twin
from rappd.features.calls.operations import CallOperations
from rappd.federation.greetings import Greetings
from rappd.federation.remote_agents import RemoteAgent, names_told, offered_agents
from rappd.federation.startup_state import Availability
from twins.background_tasks import BackgroundTasks

WAIT = 25.0
"""Shorter than what one agent call may take."""
MOST_TOOLS = 80
"""Of all peers together: models take no more than some hundred tools."""
MOST_NAMED = 50


class PeerToolGateway:
    """Other machines as tools of a turn here; each call is recorded on the turn's own thread."""

    def __init__(
        self,
        sender: str,
        availability: Availability,
        peers: PeerStore,
        presence: Presence,
        greetings: Greetings,
        dispatcher: Dispatcher,
        calls: CallOperations,
        tasks: BackgroundTasks,
    ) -> None:
        """``sender`` is this machine."""
        self._sender, self._availability, self._peers = sender, availability, peers
        self._presence, self._greetings = presence, greetings
        self._dispatcher, self._calls, self._tasks = dispatcher, calls, tasks
        self._ask_peer: tuple[str, dict[str, Any]] | None = None
        self._ask_peer_version = self._offered_of = -1
        self._offered: list[Peer] = []
        self._known: dict[str, tuple[object, Peer, list[Endpoint[Call]]]] = {}
        dispatcher.endpoints.add_source(ANYBODY, self.offered)

    async def perform(self, context: RequestContext, operation: str, arguments: dict[str, Any]) -> Any:
        """``peers.list`` and ``peers.ask``, for the shipped AskPeer."""
        if not context.caller.is_owners:  # the permissions that peers gave this machine are no friend's
            raise RefusedError(
                "Other machines are asked for this machine's owner only.", do="Ask them yourself."
            )
        await self._availability.wait()
        if operation == "peers.list":
            return {"peers": [self._row(peer) for peer in self._peers.all()]}
        if operation != "peers.ask":
            raise NotFoundError(f'There is no operation "{operation[:40]}".')
        text = {key: value for key, value in arguments.items() if isinstance(value, str)}
        peer = self._peers.find(text.get("peer", ""))
        given = arguments.get("arguments")
        data = call_data(
            text.get("text", ""),
            text.get("agent", ""),
            given if isinstance(given, dict) else {},
            () if text.get("twin") else self._greetings.of(peer.fingerprint).agents,
        )
        reply = await self.ask_recorded(context, peer, with_twin(data, text.get("twin", "")))
        if reply.verb == ACK:
            return {"result": _at_it(peer)}
        if reply.verb == ERROR:
            reason = str(reply.data.get("msg", ""))[:500] or f"{peer.name} could not do it."
            code = reply.data.get("code")
            answered, do = code if type(code) is int else 500, str(reply.data.get("do") or "")[:200]
            raise DeclinedError(f"{peer.name}: {reason}", answered=answered, do=do)
        return {"result": reply.data.get("result", reply.data.get("response", reply.data))}

    def offered(self) -> list[Endpoint[Call]]:
        """Agents of offered peers that are here now, up to ``MOST_TOOLS``, each peer's share alike."""
        if self._offered_of != self._peers.version:
            self._offered_of = self._peers.version
            self._offered = [peer for peer in self._peers.all() if peer.offered]
        if not self._offered or not self._availability.ready.is_set():
            return []
        peers = [peer for peer in self._offered if self._presence.presence(peer.fingerprint).state == "here"]
        share = max(1, MOST_TOOLS // max(1, len(peers)))
        return [one for peer in peers for one in self._agents_of(peer)[:share]][:MOST_TOOLS]

    def ask_peer(self) -> tuple[str, dict[str, Any]] | None:
        """AskPeer's description and parameters with the peers' names, so that a model, or none, can tell who is meant."""
        if self._ask_peer_version != self._peers.version:
            names = [peer.name for peer in self._peers.all()][:MOST_NAMED]
            self._ask_peer_version = self._peers.version
            self._ask_peer = _with_names(names) if names else None
        return self._ask_peer

    async def _ask_agent(
        self,
        peer: Peer,
        agent: str,
        context: RequestContext,
        arguments: dict[str, Any],
        upstream: dict[str, Any] | None,
        on_piece: OnPiece | None,
    ) -> AgentResult:
        """One call of a peer's agent; what goes wrong is its result."""
        started = time.monotonic()
        slush = None
        try:
            now = self._peers.get(peer.fingerprint)
            if now is None or not now.offered:  # since the turn began
                raise NotPairedError(f"{peer.name}'s agents may not be used any more.")
            data = {"agent": agent, "args": arguments}
            reply = await self.ask_recorded(context, now, data, keep=False)
        except ReportableError as problem:
            return AgentResult(False, str(problem), None, time.monotonic() - started)
        if reply.verb == DONE:
            result = reply.data.get("result", reply.data.get("response", ""))
            slush = reply.data.get("data_slush")
        else:
            result = _at_it(peer) if reply.verb == ACK else reply.data.get("msg", "It failed.")
        return AgentResult(
            reply.verb in (DONE, ACK),
            result if isinstance(result, str) else str(result),
            slush if isinstance(slush, dict) and not too_deep(slush) else None,
            time.monotonic() - started,
        )

    async def ask_recorded(
        self,
        context: RequestContext,
        peer: Peer,
        data: dict[str, Any],
        *,
        keep: bool = True,
        wait: float = WAIT,
    ) -> Envelope:
        """A HELP within a turn here, both sides on its thread: DONE, ERROR, or the ACK of what takes longer.

        ``keep``: to a peer that is away it goes later. Raises ``ReportableError``.
        """
        to, dispatcher = brainstem_id(peer.fingerprint), self._dispatcher
        outer = context.envelope.extensions
        asked = await dispatcher.record_call_first(context, sender=self._sender, recipient=to, data=data)
        came, begun = outer.get(PATH), context.envelope.id
        path = tuple(came) if isinstance(came, list) else ()
        trace = str(outer.get(TRACEPARENT) or "") or trace_of(begun if is_uuid(begun) else asked.id)
        try:
            reply = await self._calls.ask(peer, asked, wait=wait, path=path, trace=trace)
        except PeerOfflineError as problem:
            dispatcher.record_result(context, asked, ERROR, _error_data(problem))
            if not keep:
                raise
            await self._calls.keep(peer, asked, path=path, trace=trace)
            raise PeerOfflineError(
                f"{str(problem).rstrip('.')}; the question waits and goes by itself.", do="rappd outbox list"
            ) from problem
        except ReportableError as problem:
            dispatcher.record_result(context, asked, ERROR, _error_data(problem))
            raise
        except asyncio.CancelledError:  # nobody waits for the turn any more
            dispatcher.record_cancelled(context, asked)
            self._tasks.spawn(self._calls.cancel(peer.fingerprint, asked.id))
            raise
        if reply.verb == ACK:  # its end is written down when it comes
            await self._calls.keep(peer, asked, path=path, trace=trace, accepted=True)
        else:
            dispatcher.record_result(context, asked, reply.verb, reply.data)
        return reply

    def _agents_of(self, peer: Peer) -> list[Endpoint[Call]]:
        """The agents that a peer advertised last, as ``Clock_on_pi``; checked once for each HELLO."""
        greeting = self._greetings.of(peer.fingerprint)
        known = self._known.get(peer.fingerprint)
        if known is None or known[0] is not greeting or known[1] is not peer:
            agents = [self._endpoint(peer, agent) for agent in offered_agents(greeting.agents)]
            known = self._known[peer.fingerprint] = (greeting, peer, agents)
        return known[2]

    def _endpoint(self, peer: Peer, agent: RemoteAgent) -> Endpoint[Call]:
        return Endpoint(
            agent_id(agent.name, peer.fingerprint),
            "elsewhere",
            peer.name,
            safe_tool_name(f"{agent.name}_on_{peer.name}"),
            f"On the machine {peer.name}: {agent.description}",
            agent.parameters,
            None,
            ANYBODY,
            partial(self._ask_agent, peer, agent.name),
        )

    def _row(self, peer: Peer) -> dict[str, Any]:
        return {
            "name": peer.name,
            "presence": self._presence.presence(peer.fingerprint).state,
            "agents": names_told(self._greetings.of(peer.fingerprint).capabilities),
        }


def _with_names(names: list[str]) -> tuple[str, dict[str, Any]]:
    from agents.library.ask_peer_agent import AskPeerAgent  # a home without peers needs none of it

    tool = AskPeerAgent()
    parameters = tool.metadata["parameters"]
    peer = {**parameters["properties"]["peer"], "enum": names}
    properties = {**parameters["properties"], "peer": peer}
    description = f"{tool.metadata['description']} Peers: {', '.join(names)}."
    return description, {**parameters, "properties": properties}


def _at_it(peer: Peer) -> str:
    return f"{peer.name} works on it still; its answer will stand in this conversation's record."


def _error_data(problem: ReportableError) -> dict[str, Any]:
    return {"code": problem.status, "msg": str(problem), "reason": problem.code}
