"""Envelopes over HTTPS: ``POST /envelopes`` and what belongs to it (Rulebook §3)."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import orjson
from aiohttp import web

from envelopes import emergence, wire
from envelopes.errors import EnvelopeError, Malformed
from envelopes.problem import Problem
from envelopes.record import ACK, HELLO, HELP, Envelope
from rappd.doors.answer import ok
from rappd.doors.federation.callers import caller
from rappd.doors.federation.keys import HELLO_LIMIT, MACHINES
from rappd.errors import NotFound
from rappd.gate import Caller
from rappd.machines.machines import Machines
from rappd.machines.receiving import Work, stream_envelope

routes = web.RouteTableDef()


class WrongMedia(EnvelopeError):
    """A body that is not announced as JSON in UTF-8."""

    code = "media_type"
    status = 415


@routes.post("/envelopes")
async def one(request: web.Request) -> web.StreamResponse:
    """One envelope in, its reply out; the status mirrors an ERROR's code, 202 goes with an ACK."""
    machines = request.app[MACHINES]
    try:
        who, name = caller(request)
        envelope = _named(wire.decode(await _body(request)), name)
    except (EnvelopeError, Problem) as problem:
        return _answer(_refusal(machines, problem))
    if envelope.verb == HELLO and not who.peer:
        request.app[HELLO_LIMIT].take(request.remote or "")
    reply = await _reply(machines, envelope, who)
    return _answer(reply)


@routes.post("/envelopes/batch")
async def batch(request: web.Request) -> web.Response:
    """Several at once, for outboxes: kept first, begun afterwards; the replies come in the same order."""
    machines = request.app[MACHINES]
    who, name = caller(request)
    found = wire.decode_batch(await _body(request))
    replies = await asyncio.gather(*(_accepted(machines, one, who, name) for one in found))
    return web.Response(body=wire.encode_batch(replies), headers=_HEADERS)


@routes.get("/envelopes/{id}")
async def fetch(request: web.Request) -> web.StreamResponse:
    """What became of an envelope of the caller's: its reply, or an ACK while it is under way."""
    machines = request.app[MACHINES]
    who, name = caller(request)
    sender = _sender(request, who, name)
    ident = request.match_info["id"]
    if machines.receiver.find(sender, ident) is not None:
        return _answer(Envelope(ident, machines.id, sender, ACK, {"state": "started"}))
    reply = await machines.receiver.recorded(sender, ident)
    if reply is None:
        raise NotFound("No such envelope of yours.", do="Send it again.")
    return _answer(reply)


@routes.get("/envelopes/{id}/stream")
async def stream(request: web.Request) -> web.StreamResponse:
    """A HELP's progress as STREAM envelopes, ending with its DONE or ERROR; `Last-Event-ID` goes on."""
    machines = request.app[MACHINES]
    who, name = caller(request)
    sender, ident = _sender(request, who, name), request.match_info["id"]
    work = machines.receiver.find(sender, ident)
    recorded = await machines.receiver.recorded(sender, ident) if work is None else None
    if work is None and recorded is None:
        raise NotFound("No such envelope of yours.", do="Send it again.")
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "no-store"}
    )
    await response.prepare(request)
    after = request.headers.get("Last-Event-ID", "0")
    with contextlib.suppress(ConnectionError):
        last = recorded or await _follow(response, machines, work, sender, ident, after)
        await response.write(b"event: end\ndata: %s\n\n" % emergence.encode(last))
        await response.write_eof()
    return response


@routes.get("/agents/{id}/capabilities")
async def capabilities(request: web.Request) -> web.Response:
    """What of an agent, or of a whole brainstem, this caller may use (Rulebook §5)."""
    who, _ = caller(request)
    found = await request.app[MACHINES].catalogue.capabilities(request.match_info["id"], who)
    if found is None:
        raise NotFound("There is nothing of that name for you.", do="Ask the owner to share it.")
    return ok(found)


async def _follow(
    response: web.StreamResponse, machines: Machines, work: Work | None, sender: str, ident: str, after: str
) -> Envelope:
    assert work is not None
    asked = Envelope(ident, sender, machines.id, HELP, {})
    async for number, event in work.live.follow(int(after[:9]) if after.isdecimal() else 0):
        piece = emergence.encode(stream_envelope(asked, number, orjson.loads(event)))
        await response.write(b"id: %d\ndata: %s\n\n" % (number, piece))
    return machines.receiver.outward(asked, await asyncio.shield(work.task))


async def _accepted(machines: Machines, found: Envelope | Malformed, who: Caller, name: str) -> Envelope:
    if isinstance(found, Malformed):
        return _refusal(machines, found)
    envelope = _named(found, name)
    try:
        armed = await machines.credentials.armed(envelope, who)
    except Problem as problem:
        return machines.receiver.refuse(envelope, problem)
    return await machines.receiver.accept(envelope, armed)


async def _reply(machines: Machines, envelope: Envelope, who: Caller) -> Envelope:
    try:
        armed = await machines.credentials.armed(envelope, who)
    except Problem as problem:
        return machines.receiver.refuse(envelope, problem)
    reply = await machines.receiver.receive(envelope, armed)
    return reply or envelope.reply(ACK, {"state": "done"})


def _refusal(machines: Machines, problem: Problem) -> Envelope:
    shaped: Any = problem  # one shape for all of them: status, code, text, do
    return wire.refusal_of(shaped, sender=machines.id)


def _sender(request: web.Request, who: Caller, name: str) -> str:
    """Whose envelopes the caller may ask for: its own. `?from=` names one of several agents of it."""
    asked = request.query.get("from", "")
    if name:
        return name
    own = f"brainstem_{who.peer[:16]}"
    return asked if who.peer and asked.endswith(f"_{who.peer[:16]}") else own


def _named(envelope: Envelope, name: str) -> Envelope:
    """Whoever has a token and no machine of its own is called by the token, whatever it says."""
    if not name:
        return envelope
    return Envelope(envelope.id, name, envelope.recipient, envelope.verb, envelope.data, envelope.extensions)


async def _body(request: web.Request) -> bytes:
    if not wire.is_content_type(request.headers.get("Content-Type")):
        raise WrongMedia("The body is not application/json in UTF-8.", do=f"Send {emergence.CONTENT_TYPE}.")
    return await request.read()


def _answer(reply: Envelope) -> web.Response:
    return web.Response(body=emergence.encode(reply), status=wire.http_status(reply), headers=_HEADERS)


_HEADERS: dict[str, Any] = {"Content-Type": emergence.CONTENT_TYPE}
