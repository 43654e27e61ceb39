"""The content of a session egg: participants and events, in one shape whatever shape they were written in."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec

MOST_PAGE_BYTES = 2 << 20
MOST_TRANSCRIPT_BYTES = 8 << 20
MOST_EVENTS = 10_000
MOST_FILE_BYTES = 16 << 20
MOST_PERSONA = 4000
ROLES = ("operator", "coordinator", "twin", "observer")

_KIND = re.compile(r"[a-z][a-z0-9_]{0,39}")
_KINDS_OF_ROLES = {"user": "operator_input", "assistant": "twin_response"}
_TOLD = ("to", "via", "on_behalf_of", "do", "label")
_LINE = 120
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_LARGEST = 1 << 53


class Participant(msgspec.Struct, frozen=True):
    """One of those who were in the session. ``role`` is one of ``ROLES``, ``persona`` how it was to speak, or ""."""

    rappid: str
    role: str
    name: str
    persona: str = ""


class SessionEvent(msgspec.Struct, frozen=True):
    """One event. ``event`` grows from one to the next; ``ts`` is ISO 8601, or "" where nobody said it."""

    event: int
    event_id: str
    kind: str
    ts: str
    by: str
    data: dict[str, Any]
    """``text``, and perhaps ``to``, ``via``, ``on_behalf_of``, ``do``, ``label``, ``error``."""

    @property
    def text(self) -> str:
        """The words of it."""
        return str(self.data.get("text", ""))


class SessionContent(msgspec.Struct, frozen=True):
    """An egg's session. ``page`` is "" where it brought none; ``transcript`` is as it stands in the file."""

    rappid: str
    title: str
    description: str
    participants: list[Participant]
    events: list[SessionEvent]
    transcript: list[Any]
    page: str
    page_pinned: bool
    transcript_pinned: bool
    parent_rappid: str
    branch_at_event: int | None
    made_at: str
    made_by: str

    @property
    def last_event(self) -> int:
        """The number of its last event; -1 without one."""
        return self.events[-1].event if self.events else -1


def participants_of(found: Iterable[Any]) -> list[Participant]:
    """The participants that are named; what is no participant is left out."""
    read = []
    for one in found:
        if isinstance(one, dict) and (name := line(one.get("name")) or line(one.get("rappid"))):
            role = one.get("role")
            persona = line(one.get("persona"), MOST_PERSONA)
            role = role if role in ROLES else "observer"
            read.append(Participant(line(one.get("rappid")), role, name, persona))
    return read


def events_of(transcript: Iterable[Any], participants: Iterable[Participant] = ()) -> list[SessionEvent]:
    """The events of a transcript of any published shape; what is no event is left out."""
    names = {one.rappid: one.name for one in participants if one.rappid}
    events: list[SessionEvent] = []
    for one in transcript:
        if isinstance(one, dict):
            events.append(_event(one, events[-1].event if events else -1, names))
    return events


def line(value: Any, most: int = _LINE) -> str:
    """A value as one line fit to be shown; "" for what is no text."""
    return " ".join(_UNSHOWN.sub(" ", value).split())[:most] if isinstance(value, str) else ""


def _event(one: dict[str, Any], before: int, names: dict[str, str]) -> SessionEvent:
    number = one.get("event")
    if type(number) is not int or not before < number < _LARGEST:
        number = before + 1
    given = one.get("data")
    fields: dict[str, Any] = given if isinstance(given, dict) else {}
    data: dict[str, Any] = {"text": _text(fields, given, one)}
    data |= {key: found for key in _TOLD if (found := line(fields.get(key)))}
    if fields.get("error") is True:
        data["error"] = True
    role = one.get("role")
    kind = one.get("kind") or (_KINDS_OF_ROLES.get(role) if isinstance(role, str) else None)
    by = line(one.get("by")) or line(role)
    return SessionEvent(
        number,
        line(one.get("event_id")),
        kind if isinstance(kind, str) and _KIND.fullmatch(kind) else "note",
        _moment(one.get("ts")),
        names.get(by, by),
        data,
    )


def _text(fields: dict[str, Any], given: Any, one: dict[str, Any]) -> str:
    places = (
        fields.get("text"),
        fields.get("message"),
        fields.get("content"),
        given,
        one.get("text"),
        one.get("content"),
    )
    found = next((place for place in places if isinstance(place, str) and place), "")
    return _CONTROL.sub("", found)


def _moment(value: Any) -> str:
    """ISO 8601 of text or of a number of seconds or milliseconds; "" for anything else."""
    try:
        if isinstance(value, str) and len(value) <= 40:
            datetime.fromisoformat(value)
            return value
        if type(value) in (int, float):
            at = datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)
            return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    except (ValueError, OverflowError, OSError):
        return ""
    return ""
