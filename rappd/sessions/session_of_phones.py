"""The session that phones join."""

from __future__ import annotations

import asyncio

from rappd.sessions.recorded_sessions import SessionRow, SessionView
from rappd.sessions.sessions import Session, Sessions


class ShownSession(SessionView):
    """A session: who is in it, and if phones join it."""

    here: list[str]
    closed: bool
    current: bool


class CurrentSession:
    """The newest session, until the owner chooses another one."""

    def __init__(self, sessions: Sessions) -> None:
        self._sessions = sessions
        self._id = ""
        self._choosing = asyncio.Lock()

    async def open(self) -> Session:
        """Opens it; a new one where there is none."""
        async with self._choosing:  # two phones that join at once join the same
            if not self._id:
                rows = await self._sessions.record.rows()
                self._id = rows[0].id if rows else ""
            session = await self._sessions.open(self._id)
            self._id = session.id
        return session

    def choose(self, session: Session) -> None:
        """Makes a session the current one."""
        self._id = session.id

    async def shown(self, row: SessionRow) -> ShownSession:
        """A session as lists show it: who is in it, and if phones join it."""
        current = self._id or (await self._sessions.find("")).id
        session = self._sessions.opened(row.id)
        return {
            **row.shown(),
            "here": [] if session is None else session.here,
            "closed": await self._sessions.record.is_closed(row.thread),
            "current": row.id == current,
        }
