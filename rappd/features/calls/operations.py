"""Asking another machine: at once if it is here, by the outbox if it is not; the record has both sides."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING, Any

import orjson
from msgspec.structs import replace

from envelopes import events
from envelopes.codecs.emergence import encode
from envelopes.codecs.privileged import refuse_privileged
from envelopes.codecs.wire import is_uuid4
from envelopes.envelope import (
    ACK,
    DEADLINE,
    DONE,
    HELP,
    PATH,
    STREAM,
    THREAD,
    TRACEPARENT,
    Envelope,
    brainstem_id,
    new_id,
)
from envelopes.errors import ReportableError
from neighborhoods.delivery.pending_replies import PendingReplies
from neighborhoods.delivery.retry import retried
from neighborhoods.discovery.peer_address_order import AddressResolver
from neighborhoods.discovery.peers_file import Entry
from neighborhoods.errors import PeerOfflineError, RetriableError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.errors import UsageProblemError
from rappd.features.calls.call_forms import (
    CallOfPeer,
    CallView,
    OwnersCall,
    call_data,
    failed,
    summary_of,
    trace_of,
    with_twin,
)
from rappd.features.operation import OWNER, Stream, Text, operation
from rappd.federation.greetings import Greetings
from rappd.federation.local_node import LocalNode
from rappd.federation.startup_state import Availability, Deferred
from rappd.tenants.tenant import HOST
from twins.workspace.workspace import Workspace

if TYPE_CHECKING:
    from neighborhoods.delivery.outbox import Outbox
    from neighborhoods.transport.peer_client import PeerClient
    from neighborhoods.transport.peer_connection import OnStream

_OWNER = Caller("control", operator=True)
DEFAULT_WAIT = 30.0
LONGEST_WAIT = 3600.0


class CallOperations:
    """``rappd call`` and ``rappd outbox``, for the page and for agents, too."""

    def __init__(
        self,
        node: LocalNode,
        availability: Availability,
        peers: PeerStore,
        resolver: AddressResolver,
        greetings: Greetings,
        dispatcher: Dispatcher,
        host: Workspace,
        pending: PendingReplies,
        peer_client: Deferred[PeerClient],
        outbox: Deferred[Outbox],
    ) -> None:
        """``host`` is the brainstem's workspace, ``pending`` are the replies that calls wait for."""
        self._node, self._availability, self._peers = node, availability, peers
        self._resolver, self._greetings, self._dispatcher = resolver, greetings, dispatcher
        self._host, self._pending = host, pending
        self._peer_client, self._outbox = peer_client, outbox

    @operation("calls.ask", "POST", "/call", right=OWNER, answers="call")
    async def call(
        self,
        peer: Text,
        text: str = "",
        agent: str = "",
        args: dict[str, Any] | None = None,
        twin: str = "",
        wait: float = DEFAULT_WAIT,
        id: str = "",
    ) -> CallView:
        """Asks a `peer`: its brainstem (`text`), a `twin` of it, or one `agent` with `args`. `wait`: seconds."""
        asked = await self.submit(peer, text=text, agent=agent, args=args, twin=twin, wait=wait, id=id)
        return await asked.row()

    @operation("calls.stream", "POST", "/call/stream", right=OWNER)
    async def stream(
        self,
        peer: Text,
        text: str = "",
        agent: str = "",
        args: dict[str, Any] | None = None,
        twin: str = "",
        wait: float = DEFAULT_WAIT,
        id: str = "",
    ) -> Stream:
        """The same as `/call` as server-sent events, as `/chat/stream` has them; the last is `done`, with the `call`, or `error`.

        A caller that disconnects does not stop the call.
        """
        asked = await self.submit(
            peer, text=text, agent=agent, args=args, twin=twin, wait=wait, id=id, stream=True
        )
        return Stream(_events_of(asked), greets=False)

    async def submit(
        self,
        selector: str,
        *,
        text: str = "",
        agent: str = "",
        args: dict[str, Any] | None = None,
        twin: str = "",
        wait: float = DEFAULT_WAIT,
        id: str = "",
        stream: bool = False,
    ) -> OwnersCall:
        """A call of the owner's, recorded and on its way. With ``stream`` its turn tells what the machine says."""
        await self._availability.wait()
        if (entry := await self._legacy(selector)) is not None:
            if agent or twin:
                kind = "an A2A agent" if entry.kind == "agent" else "a published brainstem"
                raise UsageProblemError(
                    f"{entry.name or entry.host} is {kind}: it takes a sentence, nothing else.",
                    do=f'rappd call {entry.name or entry.host} "…"',
                )
            return await self._call_legacy(entry, text, min(max(0.1, wait), LONGEST_WAIT))
        peer = self._peers.find(selector)
        data = call_data(text, agent, args, [] if twin else await self._agents_of(peer, asked=bool(agent)))
        placed = await self.begin(peer, data, twin=twin, id=id)

        async def work(turn: Turn) -> Envelope:
            try:
                reply = await self.ask(peer, placed, wait=wait, on_stream=_telling(turn) if stream else None)
            except PeerOfflineError as problem:
                await self.keep(peer, placed)
                return placed.reply(ACK, {"state": "queued", "why": str(problem)})
            except ReportableError as problem:
                await self._dispatcher.record_reply(failed(placed, problem), placed.thread)
                raise
            if reply.verb == ACK:
                await self.keep(peer, placed, accepted=True)
                return placed.reply(ACK, {"state": "accepted"})
            await self._dispatcher.record_reply(reply, placed.thread)
            return reply

        turn = Turn(placed, _OWNER, work, tells=stream)
        return OwnersCall(self._dispatcher.operations.begin(turn), peer.name, time.monotonic())

    async def begin(self, peer: Peer, data: dict[str, Any], *, twin: str = "", id: str = "") -> Envelope:
        """A call as it stands in the record, on a thread of its own: committed, and so it may be sent.

        Raises ``StoreError``.
        """
        id = id.lower()
        ident = id or new_id()
        trace = {TRACEPARENT: trace_of(ident)}
        asked = Envelope(
            ident, self._node.id, brainstem_id(peer.fingerprint), HELP, with_twin(data, twin), trace
        )
        session, title = f"call {id or new_id()}", summary_of(data)
        placed = self._dispatcher.open_thread(asked, HOST, session=session, title=title, fresh=not id)
        await self._dispatcher.record_first(placed)
        return placed

    async def ask(
        self,
        peer: Peer,
        asked: Envelope,
        *,
        wait: float,
        path: tuple[str, ...] = (),
        trace: str = "",
        on_stream: OnStream | None = None,
    ) -> Envelope:
        """Sends a recorded HELP past any queue, and waits: DONE, ERROR, or the ACK of what takes longer.

        Raises ``PeerOfflineError`` when no answer came, also when it may have been sent: its id makes a repeat safe.
        """
        wait = min(max(0.1, wait), LONGEST_WAIT)
        outward = self._outward(asked, wait, path, trace)
        if on_stream is not None and STREAM in self._greetings.of(peer.fingerprint).verbs:
            outward = replace(outward, data={**outward.data, "stream": True})
        sent = encode(outward)
        until = time.monotonic() + wait
        peer_client = self._peer_client.now()
        with self._pending.expected(peer.fingerprint, asked.id) as expected:
            try:
                reply = await retried(
                    lambda left: peer_client.send(peer, sent, wait=left, on_stream=on_stream),
                    within=wait + 1,
                )
            except RetriableError as problem:
                raise PeerOfflineError(f"{peer.name} is busy.", do="It is tried again.") from problem
            if reply.verb == ACK and (later := await expected.within(until - time.monotonic())) is not None:
                reply = later
        refuse_privileged(reply.data, listener=f"of answers, from {peer.name}")
        return reply

    async def keep(
        self,
        peer: Peer,
        asked: Envelope,
        *,
        path: tuple[str, ...] = (),
        trace: str = "",
        accepted: bool = False,
    ) -> None:
        """Puts a HELP that could not be delivered into the outbox; ``accepted``: one that is worked on."""
        sent = self._outward(asked, DEFAULT_WAIT, path, trace)
        await self._outbox.now().put(
            peer.fingerprint, sent, summary_of(asked.data), self._node.keep_seconds, accepted=accepted
        )

    @operation("calls.cancel", "POST", "/call/cancel", right=OWNER, answers="stopping")
    async def cancel(self, peer: Text, id: Text) -> CallOfPeer:
        """Stops what a `peer` does for the call with that `id`; the call is then answered so."""
        there = self._peers.find(peer)
        if not is_uuid4(id):
            raise UsageProblemError("id is not the ID of a call.", do="Send the id that the call has.")
        await self._peer_client.now().tell(
            there, encode(Envelope(id, self._node.id, brainstem_id(there.fingerprint), "CANCEL", {}))
        )
        return {"id": id, "peer": there.name}

    async def _legacy(self, selector: str) -> Entry | None:
        """The published brainstem or A2A agent of that name, address or URL, if one was added."""
        wanted = selector.strip().lower().rstrip("/")
        if self._peers.named(wanted) is not None:
            return None  # what is meant for a trusted machine never goes over plain http
        for entry in await self._resolver.legacy():
            if wanted in (
                entry.name.lower(),
                entry.host.lower(),
                entry.address,
                entry.url.lower().rstrip("/"),
            ):
                return entry if wanted else None
        return None

    async def _call_legacy(self, entry: Entry, text: str, wait: float) -> OwnersCall:
        """A turn of a published brainstem or an A2A agent, recorded like any call; nothing of it is queued."""
        data = call_data(text, "", None)
        name = entry.name or entry.host
        asked = Envelope(
            new_id(), self._node.id, f"{name}_legacy", HELP, data
        )  # no trace: it would lead nowhere
        placed = self._dispatcher.open_thread(asked, HOST, session=f"call {new_id()}", title=summary_of(data))
        await self._dispatcher.record_first(placed)

        async def work(_: Turn) -> Envelope:
            try:
                answer = await self.ask_published(entry, placed, wait=wait)
            except ReportableError as problem:
                await self._dispatcher.record_reply(failed(placed, problem), placed.thread)
                raise
            reply = placed.reply(DONE, {"result": answer, "response": answer})
            await self._dispatcher.record_reply(reply, placed.thread)
            return reply

        turn = self._dispatcher.operations.begin(Turn(placed, _OWNER, work))
        return OwnersCall(turn, name, time.monotonic(), is_legacy=True)

    async def ask_published(self, entry: Entry, asked: Envelope, *, wait: float) -> str:
        """Asks a published brainstem, or an A2A agent, what a recorded HELP says. Raises ``ReportableError``."""
        if entry.kind == "agent":
            from neighborhoods.transport import a2a_agent

            text = asked.data["user_input"]
            return await a2a_agent.ask(entry, text, session=asked.thread, wait=wait, nonce=asked.id)
        from neighborhoods.transport.published_brainstem import ask

        reply = await ask(
            entry,
            asked.data["user_input"],
            session=asked.thread,
            wait=wait,
            from_rappid=await asyncio.to_thread(self._rappid),
            nonce=asked.id,
        )
        return str(reply["response"])

    async def _agents_of(self, peer: Peer, *, asked: bool) -> list[Any]:
        """Returns the agents of a peer that this machine may use; asks the peer if ``asked`` and not known."""
        if asked and not self._greetings.is_known(peer.fingerprint):
            with contextlib.suppress(
                ReportableError, OSError, TimeoutError
            ):  # away: names are taken as typed
                await self._greetings.probe(peer.fingerprint)
        return list(self._greetings.of(peer.fingerprint).agents)

    def _outward(self, asked: Envelope, wait: float, path: tuple[str, ...], trace: str = "") -> Envelope:
        own = self._node.identity.fingerprint[:16]
        extensions: dict[str, Any] = {THREAD: asked.thread, DEADLINE: round(wait, 3), PATH: [*path, own]}
        extensions[TRACEPARENT] = trace_of(asked.id, trace or str(asked.extensions.get(TRACEPARENT) or ""))
        return Envelope(asked.id, asked.sender, asked.recipient, HELP, asked.data, extensions)

    def _rappid(self) -> str:
        """The rappid of the brainstem here, as a claim for those who cannot check a key; "" without one."""
        try:
            found = orjson.loads(self._host.files.read("rappid.json", 1 << 20))
            return str(found["rappid"])[:300]
        except (OSError, ValueError, KeyError, TypeError):
            return ""


def _telling(turn: Turn) -> OnStream:
    """Tells a turn what another machine says on the way; a repeat, which begins anew, from where it was."""
    seen = 0

    def on_stream(piece: Envelope) -> None:
        nonlocal seen
        number, event = piece.data.get("n"), events.read(piece.data.get("event"))
        if isinstance(number, int) and number > seen and event is not None:
            seen = number
            turn.tell(event)

    return on_stream


async def _events_of(asked: OwnersCall) -> AsyncGenerator[tuple[int | None, bytes | dict[str, Any]], None]:
    """The events of a call, then what came of it."""
    async for number, event in asked.turn.events():
        yield number, event
    try:
        last: dict[str, Any] = {"type": "done", "call": await asked.row()}
    except ReportableError as found:
        last = {"type": "error", **found.as_json(), "status": found.status}
    yield asked.turn.number + 1, last
