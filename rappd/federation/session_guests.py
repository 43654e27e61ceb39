"""Other machines as participants of sessions with phones. Asks only what is paired or written down, never an address."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterable
from typing import Any

import msgspec

from envelopes.envelope import DONE, ERROR, agent_id
from envelopes.errors import ReportableError
from neighborhoods.discovery.peer_address_order import AddressResolver
from neighborhoods.discovery.peers_file import Entry
from neighborhoods.discovery.presence import Presence
from neighborhoods.errors import DeclinedError, NotPairedError, PeerOfflineError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.turns import RequestContext
from rappd.errors import NotFoundError, RefusedError
from rappd.features.calls.call_forms import call_data, with_twin
from rappd.features.calls.operations import CallOperations
from rappd.federation.gateways import Gateways
from rappd.federation.greetings import Greetings
from rappd.federation.local_node import LocalNode
from rappd.federation.peer_tools import PeerToolGateway
from rappd.federation.remote_agents import names_told
from rappd.federation.startup_state import Availability
from rappd.sessions.guests import Guest, InvitableRow, ParticipantRow
from rappd.tenants.tenant import HOST

_WAIT = 600.0
"""Seconds for an answer: people watch, and others are answered meanwhile."""
_PROBED = 5.0


class SessionGuests:
    """Fulfils ``rappd.sessions.guests.GuestGateway``. All calls come from the event loop."""

    def __init__(
        self,
        node: LocalNode,
        availability: Availability,
        peers: PeerStore,
        presence: Presence,
        resolver: AddressResolver,
        greetings: Greetings,
        dispatcher: Dispatcher,
        calls: CallOperations,
        tools: PeerToolGateway,
        gateways: Gateways,
    ) -> None:
        self._node, self._availability, self._peers = node, availability, peers
        self._peer_presence, self._resolver, self._greetings = presence, resolver, greetings
        self._dispatcher, self._calls, self._tools, self._gateways = dispatcher, calls, tools, gateways
        self.recipient = agent_id("guests", node.identity.fingerprint)
        dispatcher.route(self.recipient, HOST, self.handle)

    async def find(self, name: str) -> Guest:
        """The guest that the owner names. A peer's agents and twins are those that it said this machine may use."""
        await self._availability.wait()
        agent, _, machine = name.strip().rpartition("@")
        wanted = machine.casefold()
        fingerprint = self._peers.named(wanted) or self._gateways.fingerprint(wanted)
        if fingerprint is None:
            if not agent and any(_name(one) == wanted for one in await self._resolver.legacy()):
                return Guest(written=wanted)
            raise NotFoundError(
                f'Nobody called "{name[:60]}" is paired or written down here.',
                do="rappd peers list, then: rappd sessions invite NAME@PEER",
            )
        if not agent:
            return Guest(peer=fingerprint)
        offered = (*self._agents(fingerprint), *self._greetings.of(fingerprint).twins)
        if not self._greetings.is_known(fingerprint) or not _named(
            offered, agent
        ):  # a twin is offered while it is awake there
            with contextlib.suppress(ReportableError, OSError, TimeoutError):  # away: the next line says so
                await self._greetings.probe(fingerprint)
        agents, twins = self._agents(fingerprint), self._greetings.of(fingerprint).twins
        if (twin := _named(twins, agent)) and not _named(agents, agent):
            return Guest(peer=fingerprint, twin=twin)
        found = _named(agents, agent)
        if not found:
            agents = [*agents, *twins]
            what = (
                f"It offers: {', '.join(agents[:12])}."
                if agents
                else f"{wanted} has not said what it offers."
            )
            raise NotFoundError(
                f"{wanted} offers no {agent[:60]}. {what}",
                do=f"Wake the twin there; see: rappd peers show {wanted}",
            )
        return Guest(peer=fingerprint, agent=found)

    async def possible(self) -> list[InvitableRow]:
        """The machines and agents that could be invited."""
        if not self._availability.ready.is_set():
            return []
        rows: list[InvitableRow] = []
        for peer in self._peers.all():
            own = [*self._agents(peer.fingerprint), *self._greetings.of(peer.fingerprint).twins]
            names = [peer.name, *(f"{one}@{peer.name}" for one in dict.fromkeys(own))]
            rows += [{"name": name, "plain": False} for name in names]
        written = [_name(one) for one in await self._resolver.legacy()]
        others = [(name, False) for name in self._gateways.names()] + [(name, True) for name in written]
        return rows + [
            {"name": name, "plain": plain} for name, plain in others if self._peers.named(name) is None
        ]

    def row(self, guest: Guest) -> ParticipantRow | None:
        """``{name, role, presence}``; None for one that is not paired any more."""
        if guest.written:
            return {"name": guest.written, "role": "machine", "presence": "written down"}
        peer = self._peers.get(guest.peer)
        if peer is None:
            return None
        own = guest.agent or guest.twin
        name = f"{own}@{peer.name}" if own else peer.name
        return {"name": name, "role": "agent" if own else "machine", "presence": self._presence(peer)}

    def capability(self, guest: Guest) -> str:
        """The capability that asking it takes."""
        machine = guest.peer[:16] or "written"
        own = guest.agent or guest.twin
        return f"HELP.{machine}.{own}" if own else f"HELP.{machine}"

    async def handle(self, context: RequestContext) -> dict[str, Any]:
        """One sentence for a guest; the DONE's data. Raises ``ReportableError``."""
        if context.caller.listener != "tether":
            raise RefusedError("Not allowed.", do="rappd call asks other machines.")
        await self._availability.wait()
        guest = msgspec.convert(context.envelope.data["guest"], Guest)
        text = str(context.envelope.data["user_input"])
        persona = str(context.envelope.data.get("persona") or "")
        if persona and not guest.agent:  # an agent takes a text, and plays nobody
            text = f"{persona}\n\n{text}"
        if guest.written:
            return {"response": await self._ask_written(context, guest.written, text)}
        return {"response": await self._ask_peer(context, guest, text)}

    async def _ask_peer(self, context: RequestContext, guest: Guest, text: str) -> str:
        peer = self._peers.get(guest.peer)
        if peer is None:
            raise NotPairedError("That machine is not paired any more.", do="rappd peers list")
        if self._presence(peer) == "away":
            await self._wake(peer)
        data = with_twin(
            call_data(text, guest.agent, None, self._greetings.of(peer.fingerprint).agents), guest.twin
        )
        try:
            reply = await self._tools.ask_recorded(context, peer, data, keep=False, wait=_WAIT)
        except PeerOfflineError:
            raise self._offline(peer) from None
        if reply.verb == DONE:
            found = reply.data.get("result", reply.data.get("response", ""))
            return found if isinstance(found, str) else msgspec.json.encode(found).decode()
        if reply.verb != ERROR:
            raise PeerOfflineError(f"{peer.name} works on it still.", do="Ask again later.")
        reason = str(reply.data.get("msg", ""))[:500] or "It could not do it."
        raise DeclinedError(f"{peer.name}: {reason}", answered=500, do=str(reply.data.get("do") or "")[:200])

    async def _wake(self, peer: Peer) -> None:
        """Asks once if it is there after all. Raises ``PeerOfflineError``."""
        try:
            async with asyncio.timeout(_PROBED):
                await self._greetings.probe(peer.fingerprint)
        except (PeerOfflineError, TimeoutError, OSError):
            raise self._offline(peer) from None

    def _offline(self, peer: Peer) -> PeerOfflineError:
        since = self._peer_presence.presence(peer.fingerprint).since / 1e6
        when = (
            f" since {time.strftime('%H:%M', time.localtime(since))}" if time.time() - since < 43_200 else ""
        )
        return PeerOfflineError(f"{peer.name} is away{when}.", do=f"Ask again when {peer.name} is here.")

    async def _ask_written(self, context: RequestContext, name: str, text: str) -> str:
        entries = await self._resolver.legacy()
        entry = next((one for one in entries if _name(one) == name), None)
        if entry is None:
            raise NotFoundError(f"{name} is not written down any more.", do="rappd peers list")
        data = {"user_input": text}
        asked = await self._dispatcher.record_call_first(
            context, sender=self._node.id, recipient=f"{name}_legacy", data=data
        )
        try:
            reply = await self._calls.ask_published(entry, asked, wait=_WAIT)
        except ReportableError as problem:
            refusal = {"code": problem.status, "msg": str(problem), "reason": problem.code}
            self._dispatcher.record_result(context, asked, ERROR, refusal)
            raise
        except asyncio.CancelledError:
            self._dispatcher.record_cancelled(context, asked)
            raise
        self._dispatcher.record_result(context, asked, DONE, {"result": reply, "response": reply})
        return reply

    def _agents(self, fingerprint: str) -> list[str]:
        return names_told(self._greetings.of(fingerprint).capabilities)

    def _presence(self, peer: Peer) -> str:
        if not self._availability.ready.is_set():
            return "away"
        return self._peer_presence.presence(peer.fingerprint).state


def _named(names: Iterable[str], wanted: str) -> str:
    """The one of these that is called so, however it is written; "" for none."""
    return next((one for one in names if one.casefold() == wanted.casefold()), "")


def _name(entry: Entry) -> str:
    return (entry.name or entry.host).casefold()
