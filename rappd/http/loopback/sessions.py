"""Sessions with phones, for the owner: list, show, follow, open, speak in, clear, branch and close them."""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web

from envelopes.envelope import is_uuid, new_id
from rappd.http.app_keys import DAEMON
from rappd.http.event_stream import opened
from rappd.http.loopback.security import operator_only
from rappd.http.request_body import InvalidFieldError, json_object, text_field
from rappd.http.responses import ok
from rappd.sessions.events import event_of
from rappd.sessions.sentence import Say, unfit
from rappd.sessions.session_list import SessionRow
from rappd.sessions.sessions import Session
from rappd.sessions.speakers import OWNER, Owner
from rappd.tether.screen import Screen
from rappd.tether.service import TetherService

routes = web.RouteTableDef()

_CURRENT = "current"


@routes.get("/sessions")
@operator_only
async def listing(request: web.Request) -> web.Response:
    """All sessions, the one opened last first: who is in them, and which one phones join."""
    tether = _tether(request)
    rows = await tether.sessions.record.rows()
    return ok({"sessions": [await tether.current.shown(row) for row in rows]})


@routes.post("/sessions")
@operator_only
async def open_(request: web.Request) -> web.Response:
    """Starts a session, and takes all connected phones there."""
    tether = _tether(request)
    return ok(await moved(tether, await tether.sessions.open()))


@routes.post("/sessions/{id}/open")
@operator_only
async def reopen(request: web.Request) -> web.Response:
    """Goes back to a session: all connected phones move there, and phones that come later join it."""
    tether, row = await _found(request)
    session = await tether.sessions.open(row.id)
    await tether.sessions.opened_again(session, OWNER)
    return ok(await moved(tether, session))


@routes.get("/sessions/{id}")
@operator_only
async def show(request: web.Request) -> web.Response:
    """A session (`current`: the one opened last) and a page of its events after the number `after`."""
    tether, row = await _found(request)
    records, rest = await tether.sessions.record.page(row.thread, _number(request.query.get("after", "0")))
    names = await tether.sessions.participants.names(records)
    events = [event for one in records if (event := event_of(one, names)) is not None]
    last = records[-1].n if records else None
    people, guests = tether.sessions.participants, (await tether.sessions.open(row.id)).guests
    return ok(
        {
            "session": await tether.current.shown(row),
            "participants": await people.listing(guests),
            "backend": people.backend_name(guests),
            "events": events,
            "last_seq": last,
            "more": bool(rest),
        }
    )


@routes.post("/sessions/{id}/say")
@operator_only
async def say(request: web.Request) -> web.Response:
    """Asks a participant: `text`, perhaps `to`, `event_id` (a UUID; a repeat is asked once), `wait` for the answer.

    With `via` `mic` it interrupts a running workflow, which goes on afterwards.
    """
    tether, row = await _found(request)
    body = await json_object(request)
    text, to, id = text_field(body, "text"), body.get("to") or "", body.get("event_id") or new_id()
    if not isinstance(to, str) or not is_uuid(id):
        raise InvalidFieldError("to is a name, event_id a UUID", do='Send {"text": "…"}.')
    if problem := unfit(text):
        raise InvalidFieldError(problem, do='Send {"text": "…"}.')
    session = await tether.sessions.open(row.id)
    asked = tether.sessions.say(
        session, Owner(), Say(str(id).lower(), text, to[:80], "mic" if body.get("via") == "mic" else "")
    )
    if asked is not None:
        await asyncio.shield(asked.answered if body.get("wait") else asked.recorded)
    return ok({"session": row.id, "event_id": str(id).lower()})


@routes.get("/sessions/{id}/participants")
@operator_only
async def participants(request: web.Request) -> web.Response:
    """Participants of a session, and those who could be invited: `possible` are paired machines, their agents, and what is written down."""
    tether, row = await _found(request)
    return ok(await _people(tether, await tether.sessions.open(row.id)))


@routes.post("/sessions/{id}/participants")
@operator_only
async def invite(request: web.Request) -> web.Response:
    """Invites `name`: `AGENT@PEER`, a paired machine, or a published brainstem that is written down. Never an address."""
    tether, row = await _found(request)
    session = await tether.sessions.open(row.id)
    await tether.sessions.invite(session, text_field(await json_object(request), "name"), OWNER)
    return ok(await _people(tether, session))


@routes.delete("/sessions/{id}/participants/{name}")
@operator_only
async def uninvite(request: web.Request) -> web.Response:
    """Ends an invitation."""
    tether, row = await _found(request)
    session = await tether.sessions.open(row.id)
    await tether.sessions.uninvite(session, request.match_info["name"], OWNER)
    return ok(await _people(tether, session))


@routes.post("/sessions/{id}/backend")
@operator_only
async def backend(request: web.Request) -> web.Response:
    """Chooses who answers what is addressed to nobody: `name`, a participant or one to invite; the brainstem without one."""
    tether, row = await _found(request)
    name = (await json_object(request)).get("name") or ""
    if not isinstance(name, str):
        raise InvalidFieldError("name is a text", do='Send {"name": "pi"}.')
    session = await tether.sessions.open(row.id)
    await tether.sessions.answer_by(session, name, OWNER)
    return ok(await _people(tether, session))


@routes.post("/sessions/{id}/clear")
@operator_only
async def clear(request: web.Request) -> web.Response:
    """Empties all screens; the record keeps what was said."""
    tether, row = await _found(request)
    await tether.sessions.clear(await tether.sessions.open(row.id), OWNER)
    return await _settled(tether, row)


@routes.post("/sessions/{id}/branch")
@operator_only
async def branch(request: web.Request) -> web.Response:
    """Starts a session with this one's events up to the number `at_seq` (0: all), and takes phones there."""
    tether, row = await _found(request)
    at_seq = (await json_object(request)).get("at_seq", 0)
    if type(at_seq) is not int or not 0 <= at_seq <= row.count:
        raise InvalidFieldError(f"at_seq is a number up to {row.count}", do='Send {"at_seq": 12}.')
    return ok(await moved(tether, await tether.sessions.branch(row, at_seq or row.count, OWNER)))


@routes.post("/sessions/{id}/close")
@operator_only
async def close(request: web.Request) -> web.Response:
    """Takes no further sentences. Phones see so, and stay until another session is opened."""
    tether, row = await _found(request)
    await tether.sessions.end(await tether.sessions.open(row.id), OWNER)
    return await _settled(tether, row)


@routes.get("/sessions/{id}/stream")
@operator_only
async def follow(request: web.Request) -> web.StreamResponse:
    """Server-sent events, as phones get them: `events` after the number `after` or `Last-Event-ID`, and `presence`."""
    tether, row = await _found(request)
    after = _number(request.headers.get("Last-Event-ID") or request.query.get("after", "0"))
    session = await tether.sessions.open(row.id)
    screen = Screen(after)
    async with opened(request) as events:
        await events.comment("here")
        tether.screens.add(screen)
        try:
            await tether.sessions.join(session, screen)
            async for message in screen.messages(lambda: request.transport is not None):
                await events.send(message, message.get("last_seq"))
                if message.get("more"):
                    await tether.sessions.more(session, screen)
        finally:
            tether.screens.discard(screen)
            tether.sessions.leave(session, screen)
    return events.response


async def _people(tether: TetherService, session: Session) -> dict[str, Any]:
    people = tether.sessions.participants
    await tether.sessions.record.flush()
    return {
        "session": session.id,
        "participants": await people.listing(session.guests),
        "backend": people.backend_name(session.guests),
        "possible": await people.gateway.possible(),
    }


async def moved(tether: TetherService, session: Session) -> dict[str, Any]:
    """Takes connected phones to a session; the answer shows it."""
    tether.move_to(session)
    await tether.sessions.record.flush()
    return await tether.current.shown(await tether.sessions.find(session.id))


async def _settled(tether: TetherService, row: SessionRow) -> web.Response:
    await tether.sessions.record.flush()
    return ok(await tether.current.shown(await tether.sessions.find(row.id)))


async def _found(request: web.Request) -> tuple[TetherService, SessionRow]:
    tether, id = _tether(request), request.match_info["id"]
    return tether, await tether.sessions.find("" if id == _CURRENT else id)


def _tether(request: web.Request) -> TetherService:
    return request.app[DAEMON].tether


def _number(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 19 else 0
