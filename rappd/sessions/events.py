"""Events of a session as phones see them, made from the records of its thread (RAPP v1 §18.11.4)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

from envelopes.envelope import DONE, ERROR, HELP, NOTE, PARTICIPANT, ROUND, TODO
from rappd.store.records import Event

SESSION_START, SESSION_END, CLEAR, BRANCH = "session_start", "session_end", "clear", "branch"
_OF_IMPORTED = ("imported", "to", "via", "on_behalf_of", "error", "do")
"""Fields of an event that came in a session egg; ``imported`` is its moment there, or True."""
_LONGEST = 100_000
"""Characters of a text: even when each is escaped, one event fits into a message of 1 MiB."""


def event_of(record: Event, names: dict[str, str]) -> dict[str, Any] | None:
    """The event of a record; None for what no screen shows. ``names`` are participants' by their ids.

    ``{seq, event_id, kind, by, at, text, …}``: ``seq`` is the record's number in the thread, ``at`` milliseconds
    since 1970. A sentence and its answer have one ``event_id``.
    """
    found = orjson.loads(record.body)
    data = found["data"]
    event: dict[str, Any] = {"seq": record.n, "event_id": record.id, "at": record.at // 1000}
    if record.verb == NOTE and data.get("kind") in (ROUND, TODO):
        return None
    if record.verb == NOTE:
        noted = {
            "kind": str(data.get("kind", "note")),
            "by": str(data.get("by", "")),
            "text": str(data.get("text", ""))[:_LONGEST],
        }
        fields = ("parent", "at_seq", "parent_rappid", "branch_at_event", "workflow", "label")
        return {**event, **noted, **_chosen(data, *fields, *_OF_IMPORTED)}
    if record.verb == HELP and "user_input" in data:
        if record.sender in names:  # of a participant to another machine, for the sentence before
            return None
        sentence = {
            "kind": "operator_input",
            "by": str(data.get("by", "")),
            "text": str(data["user_input"])[:_LONGEST],
        }
        to = found.get(PARTICIPANT) or names.get(record.recipient, "")
        return {**event, **sentence, "to": to, **_chosen(data, "via", "on_behalf_of", "workflow", "timer")}
    if record.verb == HELP:
        return {
            **event,
            "kind": "tool_dispatch",
            "by": names.get(record.sender, ""),
            "text": str(data.get("agent", "")),
        }
    if "agent" in data or record.recipient in names:  # of such a call, whose result is in the answer
        return None
    by = found.get(PARTICIPANT) or names.get(record.sender, record.sender.rpartition("_")[0])
    if record.verb == DONE:
        text = str(data.get("response") or data.get("result") or "")[:_LONGEST]
        return {**event, "kind": "twin_response", "by": by, "text": text}
    if record.verb == ERROR:
        do = str(data.get("do", ""))
        stopped = data.get("reason") in ("stopped", "preempted")
        again = do.startswith("Ask again") or data.get("reason") == "stopped"
        failed = {"text": str(data.get("msg", ""))[:_LONGEST], "do": do, "error": True, "again": again, "stopped": stopped}  # fmt: skip
        return {**event, "kind": "twin_response", "by": by, **failed}
    return None


def _chosen(data: dict[str, Any], *keys: str) -> dict[str, Any]:
    return {key: data[key] for key in keys if key in data}


def history(records: Iterable[Event], names: dict[str, str]) -> list[dict[str, str]]:
    """The conversation since the screens were last cleared, as a model takes it: sentences and answers."""
    found: list[dict[str, str]] = []
    for record in records:
        event = event_of(record, names)
        if event is not None and event["kind"] == CLEAR:
            found.clear()
        if event is None or not event["text"] or event.get("error"):
            continue
        if event["kind"] == "operator_input":
            found.append({"role": "user", "content": event["text"]})
        elif event["kind"] == "twin_response":
            found.append({"role": "assistant", "content": event["text"]})
    return found
