"""The owner's operations on sessions: list, show, open, speak in, invite into, clear, branch and close them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, TypedDict

from envelopes.envelope import is_uuid, new_id
from rappd.features.arguments import UnfitArgumentError
from rappd.features.operation import OWNER, Reader, Stream, Text, operation
from rappd.sessions.events import event_of
from rappd.sessions.guests import InvitableRow, ParticipantRow
from rappd.sessions.participants import OWNER as OWNER_SPEAKER
from rappd.sessions.participants import Owner
from rappd.sessions.recorded_sessions import SessionRow
from rappd.sessions.sentence_routing import Say, unfit
from rappd.sessions.session_of_phones import ShownSession
from rappd.sessions.sessions import Session
from rappd.tether.service import TetherService
from rappd.tether.session_screen import Screen

_CURRENT = "current"


class SessionPage(TypedDict):
    """A session with a page of its events, as phones get them; ``more``: others come after ``last_seq``."""

    session: ShownSession
    participants: list[ParticipantRow]
    backend: str
    events: list[dict[str, Any]]
    last_seq: int | None
    more: bool


class Asked(TypedDict):
    """A sentence that was said in a session."""

    session: str
    event_id: str


class SessionPeople(TypedDict):
    """Participants of a session, the name of who answers what is addressed to nobody, and who could be invited."""

    session: str
    participants: list[ParticipantRow]
    backend: str
    possible: list[InvitableRow]


class SessionOperations:
    """``id``: the beginning of a session's id, or ``current``, the one opened last."""

    def __init__(self, tether: TetherService) -> None:
        self._tether = tether

    @operation("sessions.list", "GET", "/sessions", right=OWNER, answers="sessions")
    async def listing(self) -> list[ShownSession]:
        """All sessions, the one opened last first: who is in them, and which one phones join."""
        rows = await self._tether.sessions.record.rows()
        return [await self._tether.current.shown(row) for row in rows]

    @operation("sessions.open", "POST", "/sessions", right=OWNER)
    async def open(self) -> ShownSession:
        """Starts a session, and takes all connected phones there."""
        return await moved(self._tether, await self._tether.sessions.open())

    @operation("sessions.reopen", "POST", "/sessions/{id}/open", right=OWNER)
    async def reopen(self, id: str) -> ShownSession:
        """Goes back to a session: all connected phones move there, and phones that come later join it."""
        session = await self._session(id)
        await self._tether.sessions.opened_again(session, OWNER_SPEAKER)
        return await moved(self._tether, session)

    @operation("sessions.follow", "GET", "/sessions/{id}/stream", right=OWNER)
    async def follow(self, reader: Reader, id: str, after: str = "0") -> Stream:
        """Server-sent events, as phones get them: `events` after the number `after` or `Last-Event-ID`, and `presence`."""
        screen = Screen(event_number(reader.last or after))
        return Stream(self._events_for(await self._session(id), screen, reader))

    async def _events_for(
        self, session: Session, screen: Screen, reader: Reader
    ) -> AsyncGenerator[tuple[int | None, dict[str, Any]], None]:
        tether = self._tether
        tether.screens.add(screen)
        try:
            await tether.sessions.join(session, screen)
            async for message in screen.messages(reader.is_there):
                yield message.get("last_seq"), message
                if message.get("more"):
                    await tether.sessions.more(session, screen)
        finally:
            tether.screens.discard(screen)
            tether.sessions.leave(session, screen)

    @operation("sessions.show", "GET", "/sessions/{id}", right=OWNER)
    async def show(self, id: str, after: str = "0") -> SessionPage:
        """A session (`current`: the one opened last) and a page of its events after the number `after`."""
        sessions, row = self._tether.sessions, await self._row(id)
        records, rest = await sessions.record.page(row.thread, event_number(after))
        names = await sessions.participants.names(records)
        guests = (await sessions.open(row.id)).guests
        return {
            "session": await self._tether.current.shown(row),
            "participants": await sessions.participants.listing(guests),
            "backend": sessions.participants.backend_name(guests),
            "events": [event for one in records if (event := event_of(one, names)) is not None],
            "last_seq": records[-1].n if records else None,
            "more": bool(rest),
        }

    @operation("sessions.say", "POST", "/sessions/{id}/say", right=OWNER)
    async def say(
        self, id: str, text: Text, to: str = "", event_id: str = "", wait: bool = False, via: str = ""
    ) -> Asked:
        """Asks a participant: `text`, perhaps `to`, `event_id` (a UUID; a repeat is asked once), `wait` for the answer.

        With `via` `mic` it interrupts a running workflow, which goes on afterwards.
        """
        row, event = await self._row(id), event_id or new_id()
        if not is_uuid(event):
            raise UnfitArgumentError("event_id must be a UUID", do='Send {"text": "…"}.')
        if problem := unfit(text):
            raise UnfitArgumentError(problem, do='Send {"text": "…"}.')
        sentence = Say(event.lower(), text, to[:80], "mic" if via == "mic" else "")
        asked = self._tether.sessions.say(await self._tether.sessions.open(row.id), Owner(), sentence)
        if asked is not None:
            await asyncio.shield(asked.answered if wait else asked.recorded)
        return {"session": row.id, "event_id": event.lower()}

    @operation("sessions.participants", "GET", "/sessions/{id}/participants", right=OWNER)
    async def participants(self, id: str) -> SessionPeople:
        """Participants of a session, and those who could be invited: `possible` are paired machines, their agents, and what is written down."""
        return await self._people(await self._session(id))

    @operation("sessions.invite", "POST", "/sessions/{id}/participants", right=OWNER)
    async def invite(self, id: str, name: Text) -> SessionPeople:
        """Invites `name`: `AGENT@PEER`, a paired machine, or a published brainstem that is written down. Never an address."""
        session = await self._session(id)
        await self._tether.sessions.invite(session, name, OWNER_SPEAKER)
        return await self._people(session)

    @operation("sessions.uninvite", "DELETE", "/sessions/{id}/participants/{name}", right=OWNER)
    async def uninvite(self, id: str, name: str) -> SessionPeople:
        """Ends an invitation."""
        session = await self._session(id)
        await self._tether.sessions.uninvite(session, name, OWNER_SPEAKER)
        return await self._people(session)

    @operation("sessions.backend", "POST", "/sessions/{id}/backend", right=OWNER)
    async def backend(self, id: str, name: str = "") -> SessionPeople:
        """Chooses who answers what is addressed to nobody: `name`, a participant or one to invite; the brainstem without one."""
        session = await self._session(id)
        await self._tether.sessions.answer_by(session, name, OWNER_SPEAKER)
        return await self._people(session)

    @operation("sessions.clear", "POST", "/sessions/{id}/clear", right=OWNER)
    async def clear(self, id: str) -> ShownSession:
        """Empties all screens; the record keeps what was said."""
        row = await self._row(id)
        await self._tether.sessions.clear(await self._tether.sessions.open(row.id), OWNER_SPEAKER)
        return await self._settled(row)

    @operation("sessions.branch", "POST", "/sessions/{id}/branch", right=OWNER)
    async def branch(self, id: str, at_seq: int = 0) -> ShownSession:
        """Starts a session with this one's events up to the number `at_seq` (0: all), and takes phones there."""
        row = await self._row(id)
        if not 0 <= at_seq <= row.count:
            raise UnfitArgumentError(f"at_seq must be a number up to {row.count}", do='Send {"at_seq": 12}.')
        begun = await self._tether.sessions.branch(row, at_seq or row.count, OWNER_SPEAKER)
        return await moved(self._tether, begun)

    @operation("sessions.close", "POST", "/sessions/{id}/close", right=OWNER)
    async def close(self, id: str) -> ShownSession:
        """Takes no further sentences. Phones see so, and stay until another session is opened."""
        row = await self._row(id)
        await self._tether.sessions.end(await self._tether.sessions.open(row.id), OWNER_SPEAKER)
        return await self._settled(row)

    async def _row(self, id: str) -> SessionRow:
        return await self._tether.sessions.find("" if id == _CURRENT else id)

    async def _session(self, id: str) -> Session:
        return await self._tether.sessions.open((await self._row(id)).id)

    async def _settled(self, row: SessionRow) -> ShownSession:
        await self._tether.sessions.record.flush()
        return await self._tether.current.shown(await self._tether.sessions.find(row.id))

    async def _people(self, session: Session) -> SessionPeople:
        people = self._tether.sessions.participants
        await self._tether.sessions.record.flush()
        return {
            "session": session.id,
            "participants": await people.listing(session.guests),
            "backend": people.backend_name(session.guests),
            "possible": await people.gateway.possible(),
        }


async def moved(tether: TetherService, session: Session) -> ShownSession:
    """Takes connected phones to a session; the answer shows it."""
    tether.move_to(session)
    await tether.sessions.record.flush()
    return await tether.current.shown(await tether.sessions.find(session.id))


def event_number(text: str) -> int:
    """The number of an event that was sent as text; 0 for what is none."""
    return int(text) if text.isdecimal() and len(text) < 19 else 0
