"""The board on disk, for agent and service (RAPP v1 §18.8); written into each of them where they are installed."""

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

_FILE = Path(__file__).resolve().parent.parent / ".brainstem_data" / "kanban" / "kanban.json"
_COLUMNS = ("To do", "Doing", "Done")
_LONGEST = {"title": 200, "description": 5000}
_one_thread = threading.Lock()


def _board() -> dict[str, Any]:
    content = _content()
    if content is None:
        return {"columns": list(_COLUMNS), "tasks": []}
    try:
        board = json.loads(content)
        sound = board["columns"] and all(
            task["id"] and task["title"] and task["column"] for task in board["tasks"]
        )
    except (ValueError, KeyError, TypeError):
        sound = False
    if not sound:
        raise ValueError("kanban.json is damaged; it was left as it is. Move it away to start anew.")
    return dict(board)


def _content() -> bytes | None:
    try:
        return _FILE.read_bytes()
    except FileNotFoundError:
        return None


@contextmanager
def _open_board() -> Iterator[dict[str, Any]]:
    """The board, alone with it; changes are written when the block ends, whole or not at all."""
    _FILE.parent.mkdir(parents=True, exist_ok=True)
    folder = os.open(_FILE.parent, os.O_RDONLY)
    try:
        with _one_thread:
            if fcntl:
                fcntl.flock(folder, fcntl.LOCK_EX)
            board = _board()
            before = json.dumps(board)
            yield board
            if json.dumps(board) != before:
                part = _FILE.with_name(f".{_FILE.name}.{uuid.uuid4().hex}")
                part.write_text(json.dumps(board, ensure_ascii=False, indent=1), encoding="utf-8")
                part.replace(_FILE)
    finally:
        os.close(folder)
