"""A recorded session as the content of a session egg (RAPP v1 §18.11.4). Works with the daemon down."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson

from envelopes.envelope import DONE, HELP, NOTE
from rappd.sessions.events import BRANCH, event_of
from rappd.sessions.participants import OWNER
from rappd.sessions.recorded_sessions import SessionRow
from rappd.sessions.replay_page import replay_page
from rappd.store.records import Event
from twins.eggs.session_content import Participant, SessionContent, SessionEvent
from twins.workspace.rappid import Rappid, label

_TOLD = ("to", "via", "on_behalf_of", "do", "label")


class Cast(msgspec.Struct, frozen=True):
    """The possible speakers of a session: names and rappids of brainstem and twins by the ids that records carry."""

    machine: str
    names: dict[str, str]
    rappids: dict[str, str]
    """By name."""


def session_content(
    row: SessionRow, records: list[Event], cast: Cast, *, at: datetime, made_by: str
) -> SessionContent:
    """The content of an egg of a session, with a new rappid: each export is a thing of its own."""
    owner = label(cast.machine, 39, otherwise="machine")
    rappid = Rappid.mint(owner, "session")
    events = [event for one in records if (event := _event(one, cast.names)) is not None]
    parent, parent_event = _parent(records, owner)
    moment = _iso(at.timestamp() * 1e6)
    begun = datetime.fromtimestamp(row.created / 1e6, UTC)
    return SessionContent(
        rappid=rappid.text,
        title=f"Session on {cast.machine}, {begun.day} {begun:%B %Y}",
        description=f"A session on {cast.machine}: {len(events)} events.",
        participants=_participants(events, cast, _told_cast(records), rappid, owner),
        events=events,
        transcript=[msgspec.structs.asdict(one) for one in events],
        page=replay_page(),
        page_pinned=True,
        transcript_pinned=True,
        parent_rappid=parent,
        branch_at_event=parent_event,
        made_at=moment,
        made_by=made_by,
    )


def session_rappid(machine: str, id: str) -> Rappid:
    """The rappid that stands for a session of this machine as the parent of another: the same each time."""
    return Rappid.mint(
        label(machine, 39, otherwise="machine"), "session", hashlib.sha256(id.encode()).digest()
    )


def _event(record: Event, names: dict[str, str]) -> SessionEvent | None:
    event = event_of(record, names)
    if event is None:
        return None
    data: dict[str, Any] = {"text": event["text"]}
    data |= {key: str(event[key]) for key in _TOLD if event.get(key)}
    if event.get("error"):
        data["error"] = True
    suffix = {HELP: "asked", NOTE: "noted", DONE: "answered"}.get(record.verb, "failed")
    return SessionEvent(
        event["seq"], f"{record.id}:{suffix}", event["kind"], _iso(event["at"] * 1000), event["by"], data
    )


def _parent(records: Iterable[Event], owner: str) -> tuple[str, int | None]:
    """(the rappid of the session that it branched from last, the event there)."""
    found: tuple[str, int | None] = ("", None)
    for one in records:
        if one.verb != NOTE or b'"branch"' not in one.body:
            continue
        data = orjson.loads(one.body)["data"]
        if data.get("kind") != BRANCH:
            continue
        if "parent_rappid" in data:
            found = str(data["parent_rappid"]), int(data["branch_at_event"])
        elif "parent" in data:
            found = session_rappid(owner, str(data["parent"])).text, int(data["at_seq"])
    return found


def _told_cast(records: Iterable[Event]) -> dict[str, tuple[str, str]]:
    """Role and persona by name, as workflows and eggs from which it branched told them; the latest counts."""
    found: dict[str, tuple[str, str]] = {}
    for one in records:
        if one.verb == NOTE and b'"cast"' in one.body:
            rows = orjson.loads(one.body)["data"].get("cast", [])
            found |= {str(row["name"]): (str(row["role"]), str(row["persona"])) for row in rows}
    return found


def _participants(
    events: list[SessionEvent],
    cast: Cast,
    roles_and_personas: dict[str, tuple[str, str]],
    session: Rappid,
    owner: str,
) -> list[Participant]:
    """The owner, who is there always, and everybody who spoke, in the order in which they did."""
    roles = {OWNER: "operator"}
    for one in events:
        if one.kind in ("twin_response", "tool_dispatch"):
            role = "twin"
        elif one.kind == "demo_step" or "on_behalf_of" in one.data:
            role = "coordinator"
        elif one.kind == "operator_input":
            role = "observer"
        else:
            continue
        before, _ = roles_and_personas.get(one.by, ("", ""))
        roles.setdefault(one.by, before if before in ("coordinator", "twin") else role)

    def rappid_of(name: str) -> str:
        seed = hashlib.sha256(f"{session.tail} {name}".encode()).digest()
        return cast.rappids.get(name) or Rappid.mint(owner, label(name, otherwise="guest"), seed).text

    return [
        Participant(rappid_of(name), role, name, roles_and_personas.get(name, ("", ""))[1])
        for name, role in roles.items()
        if name
    ]


def _iso(microseconds: float) -> str:
    at = datetime.fromtimestamp(microseconds / 1e6, UTC)
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
