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
from neighborhoods.discovery.peers_file import Entry
from neighborhoods.errors import DeclinedError, NotPairedError, PeerOfflineError
from neighborhoods.peer import Peer
from rappd.dispatch.turns import RequestContext
from rappd.errors import NotFoundError, RefusedError
from rappd.features.calls.operations import CallOperations, call_data, with_twin
from rappd.federation.gateways import Gateways
from rappd.federation.peer_tools import PeerToolGateway
from rappd.federation.remote_agents import names_told
from rappd.federation.service import FederationService
from rappd.sessions.guests import Guest
from rappd.tenants.tenant import HOST

_WAIT = 600.0
"""Seconds for an answer: people watch, and others are answered meanwhile."""
_PROBED = 5.0


class SessionGuests:
    """Fulfils ``rappd.sessions.guests.GuestGateway``. All calls come from the event loop."""

    def __init__(
        self, machines: FederationService, calls: CallOperations, peers: PeerToolGateway, gateways: Gateways
    ) -> None:
        self._machines, self._calls, self._peers, self._gateways = machines, calls, peers, gateways
        self.recipient = agent_id("guests", machines.node.identity.fingerprint)
        machines.dispatcher.route(self.recipient, HOST, self.handle)

    async def find(self, name: str) -> Guest:
        """The guest that the owner names. A peer's agents and twins are those that it said this machine may use."""
        m = self._machines
        parts = await m.available()
        agent, _, machine = name.strip().rpartition("@")
        wanted = machine.casefold()
        fingerprint = m.peer_store.named(wanted) or self._gateways.fingerprint(wanted)
        if fingerprint is None:
            if not agent and any(_name(one) == wanted for one in await parts.resolver.legacy()):
                return Guest(written=wanted)
            raise NotFoundError(
                f'Nobody called "{name[:60]}" is paired or written down here.',
                do="rappd peers list, then: rappd sessions invite NAME@PEER",
            )
        if not agent:
            return Guest(peer=fingerprint)
        offered = (*self._agents(fingerprint), *m.greetings.of(fingerprint).twins)
        if not m.greetings.is_known(fingerprint) or not _named(
            offered, agent
        ):  # a twin is offered while it is awake there
            with contextlib.suppress(ReportableError, OSError, TimeoutError):  # away: the next line says so
                await m.greetings.probe(fingerprint)
        told, twins = self._agents(fingerprint), m.greetings.of(fingerprint).twins
        if (twin := _named(twins, agent)) and not _named(told, agent):
            return Guest(peer=fingerprint, twin=twin)
        found = _named(told, agent)
        if not found:
            told = [*told, *twins]
            what = f"It offers: {', '.join(told[:12])}." if told else f"{wanted} has not said what it offers."
            raise NotFoundError(
                f"{wanted} offers no {agent[:60]}. {what}",
                do=f"Wake the twin there; see: rappd peers show {wanted}",
            )
        return Guest(peer=fingerprint, agent=found)

    async def possible(self) -> list[dict[str, Any]]:
        """Everybody that could be invited."""
        m = self._machines
        if not m.ready.is_set():
            return []
        rows: list[dict[str, Any]] = []
        for peer in m.peer_store.all():
            own = [*self._agents(peer.fingerprint), *m.greetings.of(peer.fingerprint).twins]
            names = [peer.name, *(f"{one}@{peer.name}" for one in dict.fromkeys(own))]
            rows += [{"name": name, "plain": False} for name in names]
        written = [_name(one) for one in await m.parts.resolver.legacy()]
        return [
            *rows,
            *(
                {"name": name, "plain": False}
                for name in self._gateways.names()
                if m.peer_store.named(name) is None
            ),
            *({"name": name, "plain": True} for name in written if m.peer_store.named(name) is None),
        ]

    def row(self, guest: Guest) -> dict[str, Any] | None:
        """``{name, role, presence}``; None for one that is not paired any more."""
        if guest.written:
            return {"name": guest.written, "role": "machine", "presence": "written down"}
        peer = self._machines.peer_store.get(guest.peer)
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
        await self._machines.available()
        guest = msgspec.convert(context.envelope.data["guest"], Guest)
        text = str(context.envelope.data["user_input"])
        persona = str(context.envelope.data.get("persona") or "")
        if persona and not guest.agent:  # an agent takes a text, and plays nobody
            text = f"{persona}\n\n{text}"
        if guest.written:
            return {"response": await self._ask_written(context, guest.written, text)}
        return {"response": await self._ask_peer(context, guest, text)}

    async def _ask_peer(self, context: RequestContext, guest: Guest, text: str) -> str:
        m = self._machines
        peer = m.peer_store.get(guest.peer)
        if peer is None:
            raise NotPairedError("That machine is not paired any more.", do="rappd peers list")
        if self._presence(peer) == "away":
            await self._wake(peer)
        data = with_twin(
            call_data(text, guest.agent, None, m.greetings.of(peer.fingerprint).agents), guest.twin
        )
        try:
            reply = await self._peers.ask_recorded(context, peer, data, keep=False, wait=_WAIT)
        except PeerOfflineError:
            raise self._away(peer) from None
        if reply.verb == DONE:
            found = reply.data.get("result", reply.data.get("response", ""))
            return found if isinstance(found, str) else msgspec.json.encode(found).decode()
        if reply.verb != ERROR:
            raise PeerOfflineError(f"{peer.name} works on it still.", do="Ask again later.")
        told = str(reply.data.get("msg", ""))[:500] or "It could not do it."
        raise DeclinedError(f"{peer.name}: {told}", answered=500, do=str(reply.data.get("do") or "")[:200])

    async def _wake(self, peer: Peer) -> None:
        """Asks once if it is there after all. Raises ``PeerOfflineError``."""
        try:
            async with asyncio.timeout(_PROBED):
                await self._machines.greetings.probe(peer.fingerprint)
        except (PeerOfflineError, TimeoutError, OSError):
            raise self._away(peer) from None

    def _away(self, peer: Peer) -> PeerOfflineError:
        since = self._machines.parts.presence.presence(peer.fingerprint).since / 1e6
        when = (
            f" since {time.strftime('%H:%M', time.localtime(since))}" if time.time() - since < 43_200 else ""
        )
        return PeerOfflineError(f"{peer.name} is away{when}.", do=f"Ask again when {peer.name} is here.")

    async def _ask_written(self, context: RequestContext, name: str, text: str) -> str:
        m = self._machines
        entries = await m.parts.resolver.legacy()
        entry = next((one for one in entries if _name(one) == name), None)
        if entry is None:
            raise NotFoundError(f"{name} is not written down any more.", do="rappd peers list")
        data = {"user_input": text}
        asked = await m.dispatcher.record_call_first(
            context, sender=m.node.id, recipient=f"{name}_legacy", data=data
        )
        try:
            said = await self._calls.ask_published(entry, asked, wait=_WAIT)
        except ReportableError as problem:
            told = {"code": problem.status, "msg": str(problem), "reason": problem.code}
            m.dispatcher.record_result(context, asked, ERROR, told)
            raise
        except asyncio.CancelledError:
            m.dispatcher.record_cancelled(context, asked)
            raise
        m.dispatcher.record_result(context, asked, DONE, {"result": said, "response": said})
        return said

    def _agents(self, fingerprint: str) -> list[str]:
        return names_told(self._machines.greetings.of(fingerprint).capabilities)

    def _presence(self, peer: Peer) -> str:
        if not self._machines.ready.is_set():
            return "away"
        return self._machines.parts.presence.presence(peer.fingerprint).state


def _named(names: Iterable[str], wanted: str) -> str:
    """The one of these that is called so, however it is written; "" for none."""
    return next((one for one in names if one.casefold() == wanted.casefold()), "")


def _name(entry: Entry) -> str:
    return (entry.name or entry.host).casefold()
