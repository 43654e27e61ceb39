"""The owner's operations on session eggs: open one, replay it in a frame that reaches nothing, go on from it."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from rappd.features.eggs.uploaded_eggs import UploadedEggs, whole_path
from rappd.features.operation import OWNER, Text, operation
from rappd.features.sessions.operations import moved
from rappd.sessions.participants import OWNER as OWNER_SPEAKER
from rappd.sessions.session_of_phones import ShownSession
from rappd.sessions.session_replay import (
    ReplayMaterial,
    SessionEggView,
    branch_from_egg,
    described,
    replayed,
)
from rappd.tether.service import TetherService

if TYPE_CHECKING:
    from twins.eggs.session_content import SessionContent

_FRAME_KEY = secrets.token_bytes(32)
"""Frames end with the process that gave their address."""


class WaitingReplay(SessionEggView):
    """A session egg that waits here under ``id``."""

    id: str


class ReplayShown(ReplayMaterial):
    """A session egg with its events, and the path of the replay's page."""

    egg: WaitingReplay
    frame: str


class ReplayOperations:
    """``id``: the one under which a session egg waits in ``waiting``."""

    def __init__(self, waiting: UploadedEggs, tether: TetherService) -> None:
        self._waiting, self._tether = waiting, tether

    @operation("replays.open", "POST", "/sessions/eggs", right=OWNER, answers="egg")
    async def open(self, path: Text) -> WaitingReplay:
        """Checks the session egg at `path` on this machine and keeps a copy for a day, under the answer's `id`."""
        from twins.eggs.readers.sessions import read_session

        file = whole_path(path)
        content = await asyncio.to_thread(read_session, file)
        kept = await asyncio.to_thread(self._waiting.take_in, file)
        try:
            content = await asyncio.to_thread(read_session, kept)  # what was copied is what was checked
        except BaseException:
            if kept != file:
                await asyncio.to_thread(self._waiting.discard, kept)
            raise
        return {"id": self._waiting.id_of(kept), **described(content)}

    @operation("replays.show", "GET", "/sessions/eggs/{id}", right=OWNER)
    async def show(self, id: str) -> ReplayShown:
        """A session egg that waits here, with its events, and `frame`: the path of the replay's page at `localhost`.

        Where the egg brought a page of another maker (`foreign`), that is at the same path with `/own` behind it.
        """
        content = await content_of(self._waiting, id)
        frame = f"/sessions/frames/{_frame_key(id)}/{id}"
        return {"egg": {"id": id, **described(content)}, "frame": frame, **replayed(content)}

    @operation("replays.branch", "POST", "/sessions/eggs/{id}/branch", right=OWNER)
    async def branch(self, id: str, at_event: int | None = None) -> ShownSession:
        """Starts a session with the egg's events up to the number `at_event` (without it: all), and takes phones there."""
        content = await content_of(self._waiting, id)
        session = await branch_from_egg(self._tether.sessions, content, at_event, OWNER_SPEAKER)
        return await moved(self._tether, session)


async def content_of(waiting: UploadedEggs, id: str) -> SessionContent:
    """The content of a session egg that waits. Raises ``NotFoundError``."""
    from twins.eggs.readers.sessions import read_session

    path: Path = await asyncio.to_thread(waiting.find, id)
    return await asyncio.to_thread(read_session, path)


def opens_frame(key: str, id: str) -> bool:
    """True for the key in the address of the egg's frame."""
    return hmac.compare_digest(key, _frame_key(id))


def _frame_key(id: str) -> str:
    return hmac.new(_FRAME_KEY, id.encode(), hashlib.sha256).hexdigest()
