"""Tasks and stream events of A2A 1.0: made of turns and their events, and read as somebody else wrote them. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec
import orjson

from envelopes.codecs.a2a import (
    AUTH_REQUIRED,
    CANCELED,
    COMPLETED,
    EVENTS,
    FAILED,
    MOST_PARTS,
    REJECTED,
    SUBMITTED,
    WORKING,
)
from envelopes.envelope import ACK, DONE, Envelope
from envelopes.events import Delta, Event, Notice

_OF_CODES = {401: AUTH_REQUIRED, 403: REJECTED, 499: CANCELED}


class TaskRecord(msgspec.Struct, frozen=True):
    """A task as it stands: what was asked, what came of it so far, and when that was (µs since 1970)."""

    id: str
    context: str
    state: str
    at: int
    message_id: str = ""
    asked: str = ""
    parts: list[dict[str, Any]] = []
    status_text: str = ""
    """The sentence of its status: why it failed, or a notice."""

    @property
    def is_over(self) -> bool:
        """True once nothing more comes of it."""
        return self.state not in (SUBMITTED, WORKING)


def state_of(reply: Envelope | None) -> str:
    """The state of a task whose reply this is; None while there is none."""
    if reply is None:
        return WORKING
    if reply.verb == ACK:
        return SUBMITTED if reply.data.get("state") == "accepted" else WORKING
    if reply.verb == DONE:
        return COMPLETED
    return _OF_CODES.get(reply.data.get("code", 500), FAILED)


def parts_of(reply: Envelope) -> list[dict[str, Any]]:
    """The content of a reply as parts of an artifact; an agent's JSON is a data part."""
    if reply.verb != DONE:
        partial = reply.data.get("response")
        return [_text(partial)] if isinstance(partial, str) and partial else []
    if isinstance(text := reply.data.get("response"), str):
        return [_text(text)]
    result = reply.data.get("result", "")
    if not isinstance(result, str):
        return [{"data": result, "mediaType": "application/json"}]
    if result[:1] in ("{", "["):
        try:
            return [{"data": orjson.loads(result), "mediaType": "application/json"}]
        except orjson.JSONDecodeError:
            pass
    return [_text(result)]


def text_of(found: object) -> str:
    """The parts of somebody's message or artifact as text; a file is named, not taken."""
    parts = found.get("parts") if isinstance(found, dict) else None
    texts: list[str] = []
    for part in parts[:MOST_PARTS] if isinstance(parts, list) else ():
        if not isinstance(part, dict):
            continue
        if isinstance(text := part.get("text"), str):
            texts.append(text)
        elif "data" in part:
            texts.append(orjson.dumps(part["data"]).decode())
        elif "raw" in part or "url" in part:
            kind = part.get("mediaType") or "file"
            name = part.get("filename") or "without a name"
            texts.append(f"[a file was not taken: {str(name)[:80]}, {str(kind)[:80]}]")
    return "\n\n".join(texts)


def said_of(reply: Envelope) -> str:
    """The sentence of a task's status: an error with its advice, or a notice beside the answer."""
    data = reply.data
    if reply.verb == DONE:
        return str(data.get("notice", ""))
    return " ".join(str(data[key]) for key in ("msg", "do") if data.get(key))


def task(found: TaskRecord, *, history: int | None = None, artifacts: bool = True) -> dict[str, Any]:
    """A task as JSON. ``history``: the number of messages of it, None for all."""
    body: dict[str, Any] = {"id": found.id, "contextId": found.context, "status": _status(found)}
    if artifacts and found.parts:
        body["artifacts"] = [{"artifactId": ANSWER, "name": ANSWER, "parts": found.parts}]
    if found.asked and history != 0:
        body["history"] = [
            {
                "messageId": found.message_id,
                "contextId": found.context,
                "taskId": found.id,
                "role": "ROLE_USER",
                "parts": [_text(found.asked)],
            }
        ]
    return body


ANSWER = "answer"
"""The id of the one artifact of a task."""


def event_of(found: TaskRecord, event: Event, *, first: bool, everything: bool) -> dict[str, Any] | None:
    """An event of a turn as a stream event; None for what is not told.

    ``first``: no piece of the answer came before. ``everything``: the client asked for ``EVENTS``.
    """
    if isinstance(event, Delta):
        return _chunk(found, event.text, append=not first, last=False)
    if not everything and not isinstance(event, Notice):
        return None
    notice = f"{event.text}" if isinstance(event, Notice) else ""
    working = msgspec.structs.replace(found, state=WORKING, status_text=notice)
    update: dict[str, Any] = {"taskId": found.id, "contextId": found.context, "status": _status(working)}
    if everything:
        update["metadata"] = {EVENTS: msgspec.to_builtins(event)}
    return {"statusUpdate": update}


def end_of(found: TaskRecord, answer: str) -> Iterator[dict[str, Any]]:
    """The stream events that end a task; ``answer`` is what its pieces came to."""
    if found.parts and found.parts != [_text(answer)]:
        yield {
            "artifactUpdate": {
                "taskId": found.id,
                "contextId": found.context,
                "artifact": {"artifactId": ANSWER, "name": ANSWER, "parts": found.parts},
                "lastChunk": True,
            }
        }
    elif found.parts:
        yield _chunk(found, "", append=True, last=True)
    yield {"statusUpdate": {"taskId": found.id, "contextId": found.context, "status": _status(found)}}


def _status(found: TaskRecord) -> dict[str, Any]:
    moment = datetime.fromtimestamp(found.at / 1e6, UTC).isoformat(timespec="milliseconds")
    status: dict[str, Any] = {"state": found.state, "timestamp": moment.replace("+00:00", "Z")}
    if found.status_text:
        status["message"] = {
            "messageId": f"{found.id}.{found.state[11:].lower()}",
            "contextId": found.context,
            "taskId": found.id,
            "role": "ROLE_AGENT",
            "parts": [_text(found.status_text)],
        }
    return status


def _chunk(found: TaskRecord, text: str, *, append: bool, last: bool) -> dict[str, Any]:
    update: dict[str, Any] = {
        "taskId": found.id,
        "contextId": found.context,
        "artifact": {"artifactId": ANSWER, "name": ANSWER, "parts": [_text(text)]},
    }
    if append:
        update["append"] = True
    if last:
        update["lastChunk"] = True
    return {"artifactUpdate": update}


def _text(text: str) -> dict[str, Any]:
    return {"text": text}
