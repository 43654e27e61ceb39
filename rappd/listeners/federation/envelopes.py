"""Envelopes over HTTPS: ``POST /envelopes`` and what belongs to it (Rulebook §3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from envelopes.codecs import emergence, wire
from envelopes.codecs.privileged import refuse_privileged_text
from envelopes.envelope import ACK, Envelope
from envelopes.errors import MalformedError, ReportableError
from neighborhoods.errors import NotPairedError
from neighborhoods.transport.peer_client import PeerClient
from neighborhoods.transport.peer_connection import HEARTBEAT, MAX_FRAME, PROTOCOLS, PeerConnection
from neighborhoods.transport.replies import StreamedReply, fitting
from rappd.dispatch.rights import Caller
from rappd.errors import NotFoundError, RefusedError
from rappd.federation.advertised_capabilities import CapabilityCatalog
from rappd.federation.connected_peers import LineRequests
from rappd.federation.inbound import InboundHandler
from rappd.listeners.bodies import body_of, ok
from rappd.listeners.event_stream import is_wanted, last_seen, opened, with_beats
from rappd.listeners.federation import xml_messages
from rappd.listeners.federation.callers import FEDERATION, NODE_ID, RequestSender, caller, is_still

routes = web.RouteTableDef()

FOR_STRANGERS = 256 << 10
"""Bytes that an unauthenticated caller may send at once."""
FOR_BATCHES = 5 << 20

RECEIVER = web.AppKey("receiver", InboundHandler)
CATALOGUE = web.AppKey("catalogue", CapabilityCatalog)
LINE_REQUESTS = web.AppKey("line_requests", LineRequests)
PEER_CLIENT = web.AppKey("peer_client", PeerClient)


@routes.post("/envelopes")
async def one(request: web.Request) -> web.StreamResponse:
    """One envelope in, its reply out; the status mirrors an ERROR's code, 202 goes with an ACK.

    With `Accept: text/event-stream` a HELP's progress comes as STREAM envelopes, its DONE or ERROR last.
    """
    receiver = request.app[RECEIVER]
    if xml_messages.is_xml(request):
        return await xml_messages.posted(request)
    try:
        by = RequestSender(request, *caller(request))
        known = by.who.peer or by.who.caps
        raw = await body_of(request, emergence.MAX_BYTES if known else FOR_STRANGERS)
        refuse_privileged_text(raw, listener="for other machines")
        envelope = wire.decode(raw)
    except ReportableError as problem:
        return _answer(_refusal(request, problem))
    try:
        envelope, armed = await by.armed(envelope)
    except ReportableError as problem:
        return _answer(receiver.refuse(envelope, problem))
    reply = await receiver.receive(envelope, armed, stream=is_wanted(request))
    if isinstance(reply, StreamedReply):
        return await in_pieces(request, reply.pieces(), armed)
    if not is_still(request, armed):
        return _answer(receiver.refuse(envelope, _ended()))
    return _answer(reply) if reply is not None else web.Response(status=204)


@routes.post("/envelopes/batch")
async def batch(request: web.Request) -> web.Response:
    """Several at once, for outboxes: kept first, begun afterwards; the replies come in the same order."""
    try:
        by = RequestSender(request, *caller(request))
        known = by.who.peer or by.who.caps
        body = await body_of(request, FOR_BATCHES if known else FOR_STRANGERS)
        refuse_privileged_text(body, listener="for other machines")
        found = await asyncio.to_thread(wire.decode_batch, body)
    except ReportableError as problem:
        return _answer(_refusal(request, problem))
    replies = await asyncio.gather(*(_accepted(by, each) for each in found))
    body = b"[%b]" % b",".join(map(fitting, replies))
    return web.Response(body=body, headers=_HEADERS)


@routes.get("/envelopes/{id}")
async def fetch(request: web.Request) -> web.StreamResponse:
    """The reply to an envelope of the caller's, or an ACK while it is being handled."""
    receiver = request.app[RECEIVER]
    sender, ident = _own(request), request.match_info["id"]
    if (turn := receiver.find(sender, ident)) is not None:
        return _answer(Envelope(ident, turn.envelope.recipient, sender, ACK, {"state": "started"}))
    reply = await receiver.recorded(sender, ident)
    if reply is None:
        raise _unknown()
    return _answer(reply)


@routes.get("/envelopes/{id}/stream")
async def stream(request: web.Request) -> web.StreamResponse:
    """A HELP's progress as STREAM envelopes, ending with its DONE or ERROR; `Last-Event-ID` goes on."""
    who, _ = caller(request)
    pieces = await request.app[RECEIVER].pieces(_own(request), request.match_info["id"], last_seen(request))
    if pieces is None:
        raise _unknown()
    return await in_pieces(request, pieces, who)


@routes.get("/agents/{id}/capabilities")
async def capabilities(request: web.Request) -> web.Response:
    """The parts of an agent, or of a whole brainstem, that this caller may use (Rulebook §5)."""
    who, _ = caller(request)
    if not who.peer and not who.caps:
        raise _stranger()
    found = await request.app[CATALOGUE].capabilities(request.match_info["id"], who)
    if found is None:
        raise NotFoundError("There is nothing of that name for you.", do="Ask the owner to share it.")
    return ok(found)


async def _accepted(by: RequestSender, found: Envelope | MalformedError) -> Envelope:
    if isinstance(found, MalformedError):
        return _refusal(by.request, found)
    envelope, receiver = found, by.request.app[RECEIVER]
    try:
        envelope, armed = await by.armed(envelope)
    except ReportableError as problem:
        return receiver.refuse(envelope, problem)
    return await receiver.accept(envelope, armed)


def _refusal(request: web.Request, problem: ReportableError) -> Envelope:
    shaped: Any = problem  # one shape for all of them: status, code, text, do
    return wire.refusal_of(shaped, sender=request.app[NODE_ID])


def _own(request: web.Request) -> str:
    """Returns the sender whose envelopes the caller may fetch: its own. `?from=` names one of its agents."""
    who, name = caller(request)
    if name:
        return name
    if not who.peer:
        raise _stranger()
    asked = request.query.get("from", "")
    return asked if asked.endswith(f"_{who.peer[:16]}") else f"brainstem_{who.peer[:16]}"


def _ended() -> NotPairedError:
    return NotPairedError("This machine is not trusted here any more.", do="Pair anew.")


def _stranger() -> RefusedError:
    return RefusedError("Only paired machines may ask that.", do="rappd peers pair", code="not_paired")


def _unknown() -> NotFoundError:
    return NotFoundError("No such envelope of yours.", do="Send it again.")


def _answer(reply: Envelope) -> web.Response:
    return web.Response(body=fitting(reply), status=wire.http_status(reply), headers=_HEADERS)


_HEADERS: dict[str, Any] = {"Content-Type": emergence.CONTENT_TYPE}


@routes.get("/line")
async def line(request: web.Request) -> web.StreamResponse:
    """Paired machines only. It ends when either side ends it, and when the trust ends."""
    peer_client = request.app[PEER_CLIENT]
    who, _ = caller(request)
    peer = request.app[FEDERATION].peers.get(who.peer)
    if peer is None:
        raise NotPairedError("Only paired machines have a line.", do="rappd peers pair")
    socket = web.WebSocketResponse(
        protocols=PROTOCOLS,
        heartbeat=HEARTBEAT,
        max_msg_size=MAX_FRAME + 1024,
        compress=False,
        decode_text=False,
    )
    await socket.prepare(request)
    answer = request.app[LINE_REQUESTS].of(peer)
    opened = PeerConnection(socket, answer, name=peer.name, protocol=socket.ws_protocol)
    peer_client.adopt(peer, opened)
    try:
        await opened.run()
    finally:
        peer_client.dropped(peer, opened)
    return socket


BEAT = 15.0
"""Seconds of silence after which a comment shows that somebody is there."""


async def in_pieces(
    request: web.Request, pieces: AsyncIterator[tuple[int, Envelope]], who: Caller
) -> web.StreamResponse:
    """Writes them as they come, while ``who`` is trusted. A caller that disconnects does not stop the work."""
    async with opened(request) as events:
        async for piece in with_beats(pieces, BEAT):
            if not is_still(request, who):
                if request.transport is not None:
                    request.transport.abort()
                return events.response
            if piece is None:
                await events.comment()
            else:
                await events.send(fitting(piece[1]), piece[0])
    return events.response
