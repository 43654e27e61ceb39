"""The events on disk, for agent and service (RAPP v1 §18.8); written into each of them where they are installed."""

from __future__ import annotations

import json
import os
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

try:
    import fcntl
except ImportError:  # no such locks on this system: one process at a time there
    fcntl = None  # type: ignore[assignment]  # checked before use

_FILE = Path(__file__).resolve().parent.parent / ".brainstem_data" / "webhook" / "webhook.jsonl"
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
    try:
        return _FILE.read_bytes()
    except FileNotFoundError:
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
            yield
    finally:
        os.close(folder)
