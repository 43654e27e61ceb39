"""Asking another machine: at once if it is here, by the outbox if it is not; the record has both sides."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from msgspec.structs import replace

from envelopes import events
from envelopes.codecs.emergence import encode
from envelopes.codecs.privileged import refuse_privileged
from envelopes.codecs.wire import is_uuid4
from envelopes.envelope import (
    ACK,
    COST_USD,
    DEADLINE,
    DONE,
    ERROR,
    HELP,
    PATH,
    STREAM,
    THREAD,
    TRACEPARENT,
    USAGE_TOKENS,
    Envelope,
    brainstem_id,
    new_id,
)
from envelopes.errors import ReportableError
from neighborhoods.delivery.retry import retried
from neighborhoods.discovery.peers_file import Entry
from neighborhoods.errors import PeerOfflineError, RetriableError
from neighborhoods.peer import Peer
from neighborhoods.storage import EGG
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import Turn
from rappd.errors import UsageProblemError
from rappd.features.calls.open_calls import OpenCalls
from rappd.features.operation import OWNER, Stream, Text, operation
from rappd.federation.peer_view import outbox_row
from rappd.federation.service import FederationService
from rappd.tenants.tenant import HOST

if TYPE_CHECKING:
    from neighborhoods.transport.peer_connection import OnStream

_OWNER = Caller("control", operator=True)
_USAGE = ((USAGE_TOKENS, "tokens"), (COST_USD, "cost_usd"))
DEFAULT_WAIT = 30.0
LONGEST_WAIT = 3600.0


class CallOperations:
    """``rappd call`` and ``rappd outbox``, for the page and for agents, too."""

    def __init__(self, machines: FederationService) -> None:
        self._machines = machines

    @operation("calls.ask", "POST", "/call", right=OWNER)
    async def call(
        self,
        peer: Text,
        text: str = "",
        agent: str = "",
        args: dict[str, Any] | None = None,
        twin: str = "",
        wait: float = DEFAULT_WAIT,
        id: str = "",
    ) -> dict[str, Any]:
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
        return Stream(_told(asked), greets=False)

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
        m = self._machines
        await m.available()
        if (entry := await self._legacy(selector)) is not None:
            if agent or twin:
                kind = "an A2A agent" if entry.kind == "agent" else "a published brainstem"
                raise UsageProblemError(
                    f"{entry.name or entry.host} is {kind}: it takes a sentence, nothing else.",
                    do=f'rappd call {entry.name or entry.host} "…"',
                )
            return await self._call_legacy(entry, text, min(max(0.1, wait), LONGEST_WAIT))
        peer = m.peer_store.find(selector)
        data = call_data(text, agent, args, [] if twin else await self._agents_of(peer, asked=bool(agent)))
        placed = await self.begin(peer, data, twin=twin, id=id)

        async def work(turn: Turn) -> Envelope:
            try:
                reply = await self.ask(peer, placed, wait=wait, on_stream=_telling(turn) if stream else None)
            except PeerOfflineError as problem:
                await self.keep(peer, placed)
                return placed.reply(ACK, {"state": "queued", "why": str(problem)})
            except ReportableError as problem:
                await m.dispatcher.record_reply(failed(placed, problem), placed.thread)
                raise
            if reply.verb == ACK:
                await self.keep(peer, placed, accepted=True)
                return placed.reply(ACK, {"state": "accepted"})
            await m.dispatcher.record_reply(reply, placed.thread)
            return reply

        turn = Turn(placed, _OWNER, work, tells=stream)
        return OwnersCall(m.dispatcher.operations.begin(turn), peer.name, time.monotonic())

    async def begin(self, peer: Peer, data: dict[str, Any], *, twin: str = "", id: str = "") -> Envelope:
        """A call as it stands in the record, on a thread of its own: committed, and so it may be sent.

        Raises ``StoreError``.
        """
        m, id = self._machines, id.lower()
        ident = id or new_id()
        trace = {TRACEPARENT: trace_of(ident)}
        asked = Envelope(ident, m.node.id, brainstem_id(peer.fingerprint), HELP, with_twin(data, twin), trace)
        session = f"call {id or new_id()}"
        placed = m.dispatcher.open_thread(asked, HOST, session=session, title=_what(data), fresh=not id)
        await m.dispatcher.record_first(placed)
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
        m = self._machines
        wait = min(max(0.1, wait), LONGEST_WAIT)
        outward = self._outward(asked, wait, path, trace)
        if on_stream is not None and STREAM in m.greetings.of(peer.fingerprint).verbs:
            outward = replace(outward, data={**outward.data, "stream": True})
        sent = encode(outward)
        until = time.monotonic() + wait
        with m.pending_replies.expected(peer.fingerprint, asked.id) as expected:
            try:
                reply = await retried(
                    lambda left: m.parts.carrier.send(peer, sent, wait=left, on_stream=on_stream),
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
        await self._machines.parts.outbox.put(
            peer.fingerprint, sent, _what(asked.data), self._ttl(), accepted=accepted
        )

    @operation("calls.cancel", "POST", "/call/cancel", right=OWNER)
    async def cancel(self, peer: Text, id: Text) -> dict[str, Any]:
        """Stops what a `peer` does for the call with that `id`; the call is then answered so."""
        m = self._machines
        there = m.peer_store.find(peer)
        if not is_uuid4(id):
            raise UsageProblemError("id is not the ID of a call.", do="Send the id that the call has.")
        await m.parts.carrier.tell(
            there, encode(Envelope(id, m.node.id, brainstem_id(there.fingerprint), "CANCEL", {}))
        )
        return {"stopping": {"id": id, "peer": there.name}}

    @operation("outbox.list", "GET", "/outbox", right=OWNER)
    async def outbox(self, waiting: bool = False, restored: bool = False) -> dict[str, Any]:
        """The outbox: what waits for other machines; without `?waiting=1` also recent results.

        `?restored=1`: also calls that came back with a snapshot, unanswered (`state` `open`).
        """
        m = self._machines
        if m.rests:
            rows = await m.tables.outbox.outgoing(waiting=waiting)
        else:
            rows = await (await m.available()).outbox.listing(waiting=waiting)
        found = await OpenCalls(m).listing() if restored else []
        return {"outbox": [outbox_row(m.peer_store, row) for row in rows if row.verb in (HELP, EGG)] + found}

    async def count_restored(self) -> int:
        """The number of calls that came back with a snapshot, unanswered."""
        return len(await OpenCalls(self._machines).listing())

    @operation("outbox.redirect", "POST", "/outbox/{id}/redirect", right=OWNER)
    async def redirect(self, id: str, peer: Text) -> dict[str, Any]:
        """Sends a call to the machine `peer`: for one that was set up anew, or that came back with a snapshot."""
        return await OpenCalls(self._machines).redirect(id, peer)

    @operation("outbox.retry", "POST", "/outbox/{id}/retry", right=OWNER)
    async def retry(self, id: str) -> dict[str, Any]:
        """Tries one now."""
        return {"retried": outbox_row(self._machines.peer_store, await self._machines.parts.outbox.retry(id))}

    @operation("outbox.drop", "DELETE", "/outbox/{id}", right=OWNER)
    async def drop(self, id: str) -> dict[str, Any]:
        """Cancels a waiting call."""
        return {"dropped": outbox_row(self._machines.peer_store, await self._machines.parts.outbox.drop(id))}

    async def _legacy(self, selector: str) -> Entry | None:
        """The published brainstem or A2A agent of that name, address or URL, if one was added."""
        wanted = selector.strip().lower().rstrip("/")
        if self._machines.peer_store.named(wanted) is not None:
            return None  # what is meant for a trusted machine never goes over plain http
        for entry in await self._machines.parts.resolver.legacy():
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
        m = self._machines
        data = call_data(text, "", None)
        name = entry.name or entry.host
        asked = Envelope(new_id(), m.node.id, f"{name}_legacy", HELP, data)  # no trace: it would lead nowhere
        placed = m.dispatcher.open_thread(asked, HOST, session=f"call {new_id()}", title=_what(data))
        await m.dispatcher.record_first(placed)

        async def work(_: Turn) -> Envelope:
            try:
                said = await self.ask_published(entry, placed, wait=wait)
            except ReportableError as problem:
                await m.dispatcher.record_reply(failed(placed, problem), placed.thread)
                raise
            reply = placed.reply(DONE, {"result": said, "response": said})
            await m.dispatcher.record_reply(reply, placed.thread)
            return reply

        turn = m.dispatcher.operations.begin(Turn(placed, _OWNER, work))
        return OwnersCall(turn, name, time.monotonic(), is_legacy=True)

    async def ask_published(self, entry: Entry, asked: Envelope, *, wait: float) -> str:
        """Asks a published brainstem, or an A2A agent, what a recorded HELP says. Raises ``ReportableError``."""
        if entry.kind == "agent":
            from neighborhoods.transport import a2a_agent

            text = asked.data["user_input"]
            return await a2a_agent.ask(entry, text, session=asked.thread, wait=wait, nonce=asked.id)
        from neighborhoods.transport.published_brainstem import ask

        said = await ask(
            entry,
            asked.data["user_input"],
            session=asked.thread,
            wait=wait,
            from_rappid=await asyncio.to_thread(self._rappid),
            nonce=asked.id,
        )
        return str(said["response"])

    async def _agents_of(self, peer: Peer, *, asked: bool) -> list[Any]:
        """Returns the agents of a peer that this machine may use; asks the peer if ``asked`` and not known."""
        m = self._machines
        if asked and not m.greetings.is_known(peer.fingerprint):
            with contextlib.suppress(
                ReportableError, OSError, TimeoutError
            ):  # away: names are taken as typed
                await m.greetings.probe(peer.fingerprint)
        return list(m.greetings.of(peer.fingerprint).agents)

    def _outward(self, asked: Envelope, wait: float, path: tuple[str, ...], trace: str = "") -> Envelope:
        own = self._machines.node.identity.fingerprint[:16]
        extensions: dict[str, Any] = {THREAD: asked.thread, DEADLINE: round(wait, 3), PATH: [*path, own]}
        extensions[TRACEPARENT] = trace_of(asked.id, trace or str(asked.extensions.get(TRACEPARENT) or ""))
        return Envelope(asked.id, asked.sender, asked.recipient, HELP, asked.data, extensions)

    def _rappid(self) -> str:
        """The rappid of the brainstem here, as a claim for those who cannot check a key; "" without one."""
        try:
            found = orjson.loads(self._machines.tenants.host.workspace.files.read("rappid.json", 1 << 20))
            return str(found["rappid"])[:300]
        except (OSError, ValueError, KeyError, TypeError):
            return ""

    def _ttl(self) -> float:
        return self._machines.node.settings.number("peers.keep_hours") * 3600.0


@dataclass(frozen=True, slots=True)
class OwnersCall:
    """A call of the owner's: its turn, which goes on when its caller disconnects, and how its reply is shown."""

    turn: Turn
    peer: str
    started: float
    is_legacy: bool = False

    async def row(self) -> dict[str, Any]:
        """``{"call": {id, peer, state, result, seconds, thread, …}}``.

        ``state``: done, failed (the other machine said so), accepted (it works on it still), queued (away).
        """
        reply = await self.turn.reply()
        state = {DONE: "done", ERROR: "failed"}.get(reply.verb) or reply.data["state"]
        row = call_row(self.peer, self.turn.envelope, state, self.started, reply=reply)
        return {"call": {**row, "legacy": True} if self.is_legacy else row}


def call_row(
    peer: str, asked: Envelope, state: str, started: float, *, reply: Envelope | None = None
) -> dict[str, Any]:
    """A call to the peer of that name, begun at ``started``, as screens show it."""
    row: dict[str, Any] = {
        "id": asked.id,
        "peer": peer,
        "state": state,
        "thread": asked.thread,
        "seconds": round(time.monotonic() - started, 3),
    }
    if reply is None:
        return row
    if reply.verb == DONE:
        row["result"] = reply.data.get("result", reply.data.get("response", reply.data))
        row["data"] = reply.data
        row |= {name: reply.extensions[key] for key, name in _USAGE if key in reply.extensions}
    elif reply.verb == ERROR:
        row |= {
            "error": reply.data.get("msg", ""),
            "do": reply.data.get("do", ""),
            "code": reply.data.get("reason", "failed"),
            "status": reply.data.get("code", 500),
        }
    elif "why" in reply.data:
        row["why"] = reply.data["why"]
    return row


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


def call_data(
    text: str, agent: str, args: dict[str, Any] | None, known: Sequence[dict[str, Any]] = ()
) -> dict[str, Any]:
    """The data of a HELP: a sentence for a brainstem, or arguments for one agent. Raises ``UsageProblemError``.

    ``known`` are the agents that the other machine announced: they tell how ``agent`` is written there,
    and which argument a ``text`` fills: the only required one that is text, else ``query`` and ``user_input``.
    """
    if agent:
        card: dict[str, Any] = next((one for one in known if _is_called(one, agent)), {})
        given = dict(args or {})
        if text and (wanted := _only_text(card.get("parameters"))):
            given.setdefault(wanted, text)
        elif text and not args:
            given = {"query": text, "user_input": text}
        return {"agent": card.get("name", agent), "args": given, **({"user_input": text} if text else {})}
    if not text.strip():
        raise UsageProblemError("There is nothing to ask.", do='rappd call PEER "how are you?"')
    return {"user_input": text}


def _is_called(card: dict[str, Any], agent: str) -> bool:
    return str(card["name"]).casefold() == agent.casefold()


def _only_text(parameters: object) -> str:
    """The one required parameter that is text; "" when there are none or several."""
    schema = parameters if isinstance(parameters, dict) else {}
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict) or not isinstance(required, list):
        return ""
    texts = [
        name
        for name in required
        if isinstance(name, str)
        and isinstance(properties.get(name), dict)
        and properties[name].get("type") == "string"
    ]
    return texts[0] if len(texts) == 1 else ""


def with_twin(data: dict[str, Any], twin: str) -> dict[str, Any]:
    """The same for a twin of the other machine, by the name that people know it by."""
    return {**data, "twin": twin.strip()} if twin.strip() else data


def _what(data: dict[str, Any]) -> str:
    text = data.get("user_input") or data.get("prompt")
    return str(text or f"{data.get('agent', '')}")[:120]


def failed(asked: Envelope, problem: ReportableError) -> Envelope:
    """The ERROR that is written down where no answer came."""
    data = {"code": problem.status, "msg": str(problem), "reason": problem.code}
    return Envelope(asked.id, asked.recipient, asked.sender, ERROR, data)


def trace_of(id: str, outer: str = "") -> str:
    """The W3C traceparent of a call: the trace of ``outer`` goes on; without one, the call's id begins it."""
    digits = id.replace("-", "").lower()
    trace, flags = (outer.split("-")[1], outer.split("-")[3]) if outer else (digits, "01")
    return f"00-{trace}-{digits[16:]}-{flags}"


async def _told(asked: OwnersCall) -> AsyncGenerator[tuple[int | None, bytes | dict[str, Any]], None]:
    """The events of a call, then what came of it."""
    async for number, event in asked.turn.events():
        yield number, event
    try:
        last = {"type": "done", **await asked.row()}
    except ReportableError as found:
        last = {"type": "error", **found.as_json(), "status": found.status}
    yield asked.turn.number + 1, last
