"""The Kanban board over HTTP, for pages and other machines. The agent does all of it without this file.

GET            the board {columns, tasks}
POST tasks     {title, column?, description?} -> 201 {status, task_id}
PUT tasks/<id> {title?, column?, description?} -> {status, task_id};  DELETE tasks/<id> likewise

The board is `.brainstem_data/kanban/kanban.json`, beside the services folder, shared with the agent.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

from agents.rapps.kanban.store import _LONGEST, _board, _open_board

__manifest__: dict[str, Any] = {"needs": {}}
name = "kanban"


def handle(method: str, path: str, body: Any) -> tuple[dict[str, Any], int]:
    """One request; see above."""
    given = body if isinstance(body, dict) else {}
    match [method.upper(), *[part for part in path.split("/") if part]]:
        case ["GET"]:
            return _board(), 200
        case ["POST", "tasks"]:
            return _add(given)
        case ["PUT", "tasks", ident]:
            return _change(ident, given)
        case ["DELETE", "tasks", ident]:
            return _remove(ident)
    return _error(f"kanban has no {method} {path or '/'}.", 404)


def _add(given: dict[str, Any]) -> tuple[dict[str, Any], int]:
    with _open_board() as board:
        fields, problem = _fields(board, given)
        if problem or not fields.get("title"):
            return _error(problem or "A task needs a title.", 400)
        now = datetime.now(UTC).isoformat(timespec="seconds")
        task = {
            "id": uuid.uuid4().hex[:8],
            "title": "",
            "description": "",
            "column": board["columns"][0],
            "created_at": now,
            "updated_at": now,
        }
        task.update(fields)
        board["tasks"].append(task)
    return {"status": "success", "task_id": task["id"]}, 201


def _change(ident: str, given: dict[str, Any]) -> tuple[dict[str, Any], int]:
    with _open_board() as board:
        task = next((task for task in board["tasks"] if task["id"] == ident), None)
        if task is None:
            return _error(f"There is no task {ident}.", 404)
        fields, problem = _fields(board, given)
        if problem or fields.get("title") == "":
            return _error(problem or "A task needs a title.", 400)
        if (
            fields.get("column", task["column"]) != task["column"]
        ):  # a moved task goes to the end of its column
            board["tasks"].remove(task)
            board["tasks"].append(task)
        task.update(fields, updated_at=datetime.now(UTC).isoformat(timespec="seconds"))
    return {"status": "success", "task_id": ident}, 200


def _remove(ident: str) -> tuple[dict[str, Any], int]:
    with _open_board() as board:
        kept = [task for task in board["tasks"] if task["id"] != ident]
        if len(kept) == len(board["tasks"]):
            return _error(f"There is no task {ident}.", 404)
        board["tasks"][:] = kept
    return {"status": "success", "task_id": ident}, 200


def _fields(board: dict[str, Any], given: dict[str, Any]) -> tuple[dict[str, str], str]:
    """The fields that were given, checked, and what is wrong with them."""
    fields = {key: str(given[key]).strip() for key in _LONGEST if given.get(key) is not None}
    for key, longest in _LONGEST.items():
        if len(fields.get(key, "")) > longest:
            return {}, f"The {key} has more than {longest} characters."
    if given.get("column"):
        wanted = str(given["column"]).strip().casefold()
        column = next((column for column in board["columns"] if column.casefold() == wanted), None)
        if column is None:
            return {}, f"There is no column {given['column']}; there are {', '.join(board['columns'])}."
        fields["column"] = column
    return fields, ""


def _error(message: str, status: int) -> tuple[dict[str, Any], int]:
    return {"status": "error", "error": message}, status
