"""Webhook takes in events from other systems. The agent does all of it without this file.

POST ingest   any JSON; {source?, event_type?, summary?, payload?} are recognised -> 201 {status, received}
GET, GET events   the last 50 events, newest first: {events, count}

Events are lines of `.brainstem_data/webhook/webhook.jsonl`, beside the services folder, shared with the agent:
`{received_at, source, event_type, summary, payload}`.
"""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # no such locks on this system: one process at a time there
    fcntl = None  # type: ignore[assignment]  # checked before use

name = "webhook"

_SHOWN = 50


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
