"""Webhook takes in events from other systems. The agent does all of it without this file.

POST ingest   any JSON; {source?, event_type?, summary?, payload?} are recognised -> 201 {status, received}
GET, GET events   the last 50 events, newest first: {events, count}

Events are lines of `.brainstem_data/webhook/webhook.jsonl`, beside the services folder, shared with the agent:
`{received_at, source, event_type, summary, payload}`.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from agents.rapps.webhook.store import _LONGEST, _alone, _append, _events, _short, _summary

__manifest__: dict[str, Any] = {"needs": {}}
name = "webhook"

_SHOWN = 50


def handle(method: str, path: str, body: Any) -> tuple[dict[str, Any], int]:
    """One request; see above."""
    match [method.upper(), path.strip("/")]:
        case ["GET", "" | "events"]:
            events = list(reversed(_events()[-_SHOWN:]))
            return {"events": events, "count": len(events)}, 200
        case ["POST", "ingest"]:
            return _ingest(body)
    return _error(f"webhook has no {method} {path or '/'}.", 404)


def _ingest(body: Any) -> tuple[dict[str, Any], int]:
    if not isinstance(body, dict) or not body:
        return _error("An event is a JSON object that is not empty.", 400)
    payload = body.get("payload", body)
    line = {
        "received_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
        "source": _short(body.get("source") or "unknown"),
        "event_type": _short(body.get("event_type") or body.get("event") or body.get("type") or "event"),
        "summary": _short(body.get("summary") or _summary(payload)),
        "payload": payload,
    }
    text = json.dumps(line, ensure_ascii=False)
    if len(text) > _LONGEST:
        return _error(f"The event has more than {_LONGEST >> 10} KB.", 413)
    with _alone():
        _append(text)
    return {"status": "success", "received": 1}, 201


def _error(message: str, status: int) -> tuple[dict[str, Any], int]:
    return {"status": "error", "error": message}, status
