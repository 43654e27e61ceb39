"""Webhook shows and records events that other systems send to this machine.

Say "what events came in from github?", "how many events today?". Arguments: `action` (list, summary,
record; a bare call lists), filters `source`, `event_type`, `query` (words in it), `limit` (default 10);
for `record` also `summary` and `payload`. The answer is JSON: `{status, message, events, data_slush}`.

Events are lines of `.brainstem_data/webhook/webhook.jsonl`, beside the agents folder. Where the service is
installed, other systems post to `/api/webhook/ingest`; this agent needs neither it nor a page.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import UTC, datetime
from typing import Any

from agents.rapps.webhook.store import _LONGEST, _alone, _append, _events, _short, _summary

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
    "needs": {},
}


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
