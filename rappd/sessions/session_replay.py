"""A session egg as it is shown, and as the beginning of a live session."""

from __future__ import annotations

from typing import Any, TypedDict

import msgspec

from envelopes.envelope import new_id
from rappd.sessions.errors import NoSuchEventError
from rappd.sessions.events import BRANCH, CLEAR
from rappd.sessions.recorded_sessions import thread_of
from rappd.sessions.replay_page import replay_page
from rappd.sessions.sessions import Session, Sessions
from twins.eggs.session_content import SessionContent, SessionEvent

_CARRIED = ("operator_input", "twin_response", "tool_dispatch", CLEAR)
"""Kinds that go on as they are. Every other event becomes a line of text: it may not start, end or run anything."""
_FIELDS = ("to", "via", "on_behalf_of", "do", "error")
_AT_ONCE = 500
_MOST_CAST = 200
_LONGEST = 100_000


class SessionEggView(TypedDict):
    """A session egg without its events. ``unpinned`` is a sentence about what its hashes do not cover, "" for none."""

    title: str
    description: str
    rappid: str
    participants: list[dict[str, str]]
    events: int
    last_event: int
    page: bool
    pinned: bool
    unpinned: str
    parent_rappid: str
    branch_at_event: int | None
    made_at: str
    made_by: str


class EventView(TypedDict):
    """A ``SessionEvent``."""

    event: int
    event_id: str
    kind: str
    ts: str
    by: str
    data: dict[str, Any]


class ReplayMaterial(TypedDict):
    """The material of a replay: ``events`` in one shape.

    Where the egg brought a page of another maker, ``foreign`` is True and ``transcript`` is as that page takes it.
    """

    events: list[EventView]
    foreign: bool
    transcript: list[Any]


def described(content: SessionContent) -> SessionEggView:
    """The egg without its events: who was there, and what its hashes cover."""
    missing = [] if content.page_pinned else ["its page" if content.page else "a page, for it has none"]
    missing += [] if content.transcript_pinned else ["its transcript"]
    return {
        "title": content.title,
        "description": content.description,
        "rappid": content.rappid,
        "participants": msgspec.to_builtins(content.participants),
        "events": len(content.events),
        "last_event": content.last_event,
        "page": bool(content.page),
        "pinned": not missing,
        "unpinned": f"it carries no hash of {' and '.join(missing)}." if missing else "",
        "parent_rappid": content.parent_rappid,
        "branch_at_event": content.branch_at_event,
        "made_at": content.made_at,
        "made_by": content.made_by,
    }


def replayed(content: SessionContent) -> ReplayMaterial:
    """The material of the egg's replay."""
    foreign = is_foreign(content)
    return {
        "events": msgspec.to_builtins(content.events),
        "foreign": foreign,
        "transcript": content.transcript if foreign else [],
    }


def is_foreign(content: SessionContent) -> bool:
    """True for an egg with a page that is not this program's own: it is shown only when somebody asks for it."""
    return content.page not in ("", replay_page())


async def branch_from_egg(
    sessions: Sessions, content: SessionContent, at_event: int | None, by: str
) -> Session:
    """A new session that begins with the egg's events up to ``at_event``; all of them for None.

    They are recorded as NOTEs: nothing that an egg says passes for an answer of this machine. Raises
    ``NoSuchEventError``.
    """
    last = content.last_event if at_event is None else at_event
    if not content.events or not content.events[0].event <= last <= content.last_event:
        raise NoSuchEventError(content.events[0].event if content.events else 0, content.last_event)
    id = new_id()
    thread = thread_of(id)
    sessions.record.begin(id)
    kept = [one for one in content.events if one.event <= last]
    for number, one in enumerate(kept, 1):
        if (noted := _noted(one)) is not None:
            sessions.record.note(thread, *noted)
        if number % _AT_ONCE == 0:
            await sessions.record.flush()
    text = f'Branches from the session egg "{content.title}" after event {last}.'
    cast = [
        {"name": one.name, "role": one.role, "persona": one.persona}
        for one in content.participants[:_MOST_CAST]
    ]
    parent = {"parent_rappid": content.rappid, "branch_at_event": last, "cast": cast}
    sessions.record.note(thread, BRANCH, by, text, parent)
    await sessions.record.flush()
    return await sessions.open(id)


def _noted(event: SessionEvent) -> tuple[str, str, str, dict[str, Any]] | None:
    """(kind, by, text, more) of an event as a NOTE; None for one that nobody would see."""
    text = event.text[:_LONGEST]
    if not text and event.kind != CLEAR:
        return None
    fields: dict[str, Any] = {key: event.data[key] for key in _FIELDS if key in event.data}
    kind = event.kind if event.kind in _CARRIED else "note"
    return kind, event.by, text, {"imported": event.ts or True, **fields}
