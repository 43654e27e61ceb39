"""Webhook shows and records events that other systems send to this machine.

Say "what events came in from github?", "how many events today?". Arguments: `action` (list, summary,
record; a bare call lists), filters `source`, `event_type`, `query` (words in it), `limit` (default 10);
for `record` also `summary` and `payload`. The answer is JSON: `{status, message, events, data_slush}`.

Events are lines of `.brainstem_data/webhook/webhook.jsonl`, beside the agents folder. Where the service is
installed, other systems post to `/api/webhook/ingest`; this agent needs neither it nor a page.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # no such locks on this system: one process at a time there
    fcntl = None  # type: ignore[assignment]  # checked before use

try:
    from agents.basic_agent import BasicAgent
except ImportError:
    try:
        from openrappter.agents.basic_agent import BasicAgent  # type: ignore[import-not-found,no-redef]  # elsewhere
    except ImportError:

        class BasicAgent:  # type: ignore[no-redef]  # stands in where the file runs as a script
            def __init__(self, name: str = "", metadata: dict[str, Any] | None = None) -> None:
                self.name, self.metadata = name, metadata or {}


__manifest__ = {
    "schema": "rapp-agent/1.0",
    "name": "@rappd/webhook_agent",
    "version": "1.0.0",
    "display_name": "Webhook",
    "description": "Events that other systems sent to this machine: listed, counted, recorded.",
    "summary": "Lists the events that other systems sent.",
    "author": "rappd",
    "tags": ["webhook", "events", "integration"],
    "category": "integrations",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
}


# The store, the same in service and agent (agents/rapps/make_bundles.py).
_FILE = Path(__file__).resolve().parent.parent / ".brainstem_data" / "webhook" / "webhook.jsonl"
_BEFORE = _FILE.parents[1] / _FILE.name  # where earlier versions kept it; the next event moves it
_MOST_BYTES = 4 << 20
_KEPT = 1000
_LONGEST = 256 << 10
_one_thread = threading.Lock()


def _summary(payload: Any) -> str:
    if isinstance(payload, dict):
        for key in ("title", "message", "text", "name", "action", "subject"):
            if isinstance(payload.get(key), str) and payload[key].strip():
                return str(payload[key])
    return json.dumps(payload, ensure_ascii=False)


def _short(value: Any) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 160 else f"{text[:159]}…"


def _events() -> list[dict[str, Any]]:
    """All events, oldest first. A line that a crash cut short is passed over."""
    events = []
    for line in _content().decode("utf-8", "replace").split("\n"):
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            events.append(event)
    return events


def _content() -> bytes:
    for file in (_FILE, _BEFORE, _FILE):  # it may move between two looks
        try:
            return file.read_bytes()
        except FileNotFoundError:
            continue
    return b""


def _append(text: str) -> None:
    if _FILE.exists() and _FILE.stat().st_size > _MOST_BYTES:
        kept = [json.dumps(event, ensure_ascii=False) for event in _events()[-_KEPT:]]
        part = _FILE.with_name(f".{_FILE.name}.{uuid.uuid4().hex}")
        part.write_text("\n".join([*kept, ""]), encoding="utf-8")
        part.replace(_FILE)
    with _FILE.open("ab") as file:
        file.write(b"\n" if file.tell() and not _ends_in_newline() else b"")
        file.write(f"{text}\n".encode())


def _ends_in_newline() -> bool:
    with _FILE.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read(1) == b"\n"


@contextmanager
def _alone() -> Iterator[None]:
    """The data folder without another writer in it."""
    _FILE.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(_FILE.parent, os.O_RDONLY)
    try:
        with _one_thread:
            if fcntl:
                fcntl.flock(folder, fcntl.LOCK_EX)
            if _BEFORE.exists() and not _FILE.exists():
                _BEFORE.replace(_FILE)
            yield
    finally:
        os.close(folder)


# End of the store.


class WebhookAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "Webhook"
        text = {"type": "string"}
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Lists, counts and records webhook events received from other systems.",
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {
                        **text,
                        "enum": ["list", "summary", "record"],
                        "default": "list",
                        "description": "What to do.",
                    },
                    "source": {**text, "description": "Who sent it, such as github."},
                    "event_type": {**text, "description": "What kind of event."},
                    "query": {**text, "description": "Words that the event contains."},
                    "limit": {
                        "type": "integer",
                        "minimum": 1,
                        "maximum": 50,
                        "default": 10,
                        "description": "How many events, the newest first.",
                    },
                    "summary": {**text, "description": "record: one line about the event."},
                    "payload": {"type": "object", "description": "record: the event's data."},
                },
                "required": [],
            },
        }
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs: Any) -> str:
        action = str(kwargs.get("action") or "list").strip().lower()
        try:
            if action == "record":
                reply = _record(kwargs)
            elif action in ("list", "summary"):
                events = _events()
                found = [event for event in reversed(events) if _fits(event, kwargs)]
                reply = _listing(found, len(events), kwargs) if action == "list" else _counts(found)
            else:
                raise ValueError(f"Webhook knows no action {action!r}; it knows list, summary, record.")
        except (ValueError, OSError) as error:
            return json.dumps({"status": "error", "message": str(error)}, ensure_ascii=False)
        return json.dumps({"status": "success", **reply}, ensure_ascii=False)


def _listing(found: list[dict[str, Any]], total: int, given: dict[str, Any]) -> dict[str, Any]:
    try:
        limit = min(50, max(1, int(given.get("limit") or 10)))
    except (TypeError, ValueError):
        limit = 10
    events = found[:limit]
    lines = [
        f"{number}. {event.get('received_at')} {event.get('source')} {event.get('event_type')}: {event.get('summary')}"
        for number, event in enumerate(events, 1)
    ]
    asked = ", ".join(f"{key} {given[key]}" for key in ("source", "event_type", "query") if given.get(key))
    none = f"None of the {total} events fits: {asked}." if total else "No event has come in yet."
    message = "\n".join(lines) or none
    newest = events[0].get("summary") if events else None
    return {"message": message, "events": events, "data_slush": {"count": len(found), "newest": newest}}


def _counts(found: list[dict[str, Any]]) -> dict[str, Any]:
    kinds = Counter(f"{event.get('source')} {event.get('event_type')}" for event in found)
    lines = [f"- {kind}: {number}" for kind, number in kinds.most_common(50)]
    message = "\n".join([f"{len(found)} events.", *lines])
    return {"message": message, "counts": dict(kinds), "data_slush": {"count": len(found)}}


def _record(given: dict[str, Any]) -> dict[str, Any]:
    payload = given.get("payload")
    if not payload and not given.get("summary"):
        raise ValueError("An event needs a summary or a payload.")
    event = {
        "received_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "source": _short(given.get("source") or "unknown"),
        "event_type": _short(given.get("event_type") or "event"),
        "summary": _short(given.get("summary") or _summary(payload)),
        "payload": payload or {},
    }
    text = json.dumps(event, ensure_ascii=False)
    if len(text) > _LONGEST:
        raise ValueError(f"The event has more than {_LONGEST >> 10} KB.")
    with _alone():
        _append(text)
    return {
        "message": f"Recorded: {event['summary']}",
        "events": [event],
        "data_slush": {"newest": event["summary"]},
    }


def _fits(event: dict[str, Any], given: dict[str, Any]) -> bool:
    for key in ("source", "event_type"):
        if given.get(key) and str(given[key]).strip().casefold() != str(event.get(key)).casefold():
            return False
    text = json.dumps(event, ensure_ascii=False).casefold()
    return all(word in text for word in str(given.get("query") or "").casefold().split())


if __name__ == "__main__":
    sys.stdout.write(WebhookAgent().perform() + "\n")
