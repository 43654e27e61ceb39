"""A thread and its events as JSON rows, for pages and ``--json``."""

from __future__ import annotations

from typing import Any, TypedDict

import orjson

from envelopes.envelope import ERROR
from rappd.dispatch.envelope_rows import headline
from rappd.store.records import Event, ThreadRow
from rappd.transcript.exchanges import calls_in_words, note_in_words, results_in_words


class ThreadView(TypedDict):
    """A thread; moments are µs since 1970, ``head`` is hex. ``session``: whatever its client calls it."""

    id: str
    title: str
    workspace: str
    caller: str
    session: Any
    created: int
    updated: int
    count: int
    head: str
    parent: str
    path: list[str]


EnvelopeRow = TypedDict(
    "EnvelopeRow",
    {
        "thread": str,
        "id": str,
        "verb": str,
        "from": str,
        "to": str,
        "data": dict[str, Any],
        "title": str,
        "agent": str,
        "ok": bool,
        "traceparent": str,
        "parent": str,
    },
)
"""An envelope with a title and whether it went well."""


class EventRow(EnvelopeRow):
    """A recorded envelope with its place, moment and hash."""

    seq: int
    n: int
    at: int
    hash: str


def thread_row(thread: ThreadRow) -> ThreadView:
    """One thread; moments are µs since the epoch, ``head`` is hex."""
    return {
        "id": thread.id,
        "title": thread.title,
        "workspace": thread.workspace,
        "caller": thread.caller,
        "session": orjson.loads(thread.session) if thread.session else None,
        "created": thread.created,
        "updated": thread.updated,
        "count": thread.count,
        "head": thread.head.hex(),
        "parent": thread.parent or "",
        "path": thread.names,
    }


def event_row(event: Event) -> EventRow:
    """One recorded envelope with its place, moment and hash."""
    return {
        "seq": event.seq,
        "n": event.n,
        "at": event.at,
        "hash": event.hash.hex(),
        **envelope_row(orjson.loads(event.body)),
    }


def envelope_row(envelope: dict[str, Any]) -> EnvelopeRow:
    """An envelope as Activity lists it: with a title and whether it went well."""
    data = envelope["data"]
    match envelope["verb"]:
        case "HELP" if "agent" in data:
            title = str(data["agent"])
        case "HELP":
            title = results_in_words(data) or str(data.get("user_input", ""))
        case "DONE":
            title = calls_in_words(data) or str(data.get("response", data.get("result", "")))
        case "NOTE":
            title = note_in_words(data)
        case _:
            title = str(data.get("msg", ""))
    return {
        "thread": envelope.get("_x_thread", ""),
        "id": envelope["id"],
        "verb": envelope["verb"],
        "from": envelope["from"],
        "to": envelope["to"],
        "data": data,
        "title": headline(title, 120),
        "agent": data.get("agent", ""),
        "ok": envelope["verb"] != ERROR,
        "traceparent": envelope.get("_x_traceparent", ""),
        "parent": envelope.get("_x_parent", ""),
    }
