"""Kanban keeps a board of tasks in three columns: To do, Doing, Done.

Say "add fix the gate to the board", "move fix the gate to done", "what is on my board?". Arguments:
`action` (list, add, move, update, delete; a bare call lists), `task` (its title, or the id of one that is
there), `column`, `details`, and `title` for a new title. The answer is JSON: `{status, message, tasks,
data_slush: {open, columns}}`, with `task_id` for changes.

The board is `.brainstem_data/kanban/kanban.json`, beside the agents folder. A page and a service, where they
are installed, show the same file; this agent needs neither.
"""

from __future__ import annotations

import json
import re
import sys
import uuid
from datetime import UTC, datetime
from typing import Any

from agents.rapps.kanban.store import _COLUMNS, _LONGEST, _board, _open_board

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
    "name": "@rappd/kanban_agent",
    "version": "1.0.0",
    "display_name": "Kanban",
    "description": "A board of tasks in three columns, for people and agents alike.",
    "summary": "Keeps a board of tasks: to do, doing, done.",
    "author": "rappd",
    "tags": ["kanban", "tasks", "board"],
    "category": "productivity",
    "quality_tier": "community",
    "requires_env": [],
    "dependencies": ["@rapp/basic_agent"],
    "needs": {},
}

_WHERE = re.compile(r"\s+(to|on|onto|from|off)\s+(the|my|our)\s+((kanban|task)\s+)?board\W*$", re.IGNORECASE)


class KanbanAgent(BasicAgent):
    def __init__(self) -> None:
        self.name = "Kanban"
        text = {"type": "string"}
        self.metadata: dict[str, Any] = {
            "name": self.name,
            "description": "Manages the task board (kanban): lists, adds, moves, changes and deletes tasks "
            "in the columns To do, Doing and Done.",
            "parameters": {
                "type": "object",
                "properties": {
                    "action": {
                        **text,
                        "enum": ["list", "add", "move", "update", "delete"],
                        "default": "list",
                        "description": "What to do.",
                    },
                    "task": {**text, "description": "The task: its title, or its id if it is there already."},
                    "column": {**text, "enum": list(_COLUMNS), "description": "Which column."},
                    "details": {**text, "description": "More about the task."},
                    "title": {**text, "description": "update: the task's new title."},
                },
                "required": [],
            },
        }
        super().__init__(name=self.name, metadata=self.metadata)

    def perform(self, **kwargs: Any) -> str:
        action = str(kwargs.get("action") or ("add" if kwargs.get("task") else "list")).strip().lower()
        try:
            if action == "list":
                reply = self._list(kwargs)
            elif action in ("add", "move", "update", "delete"):
                with _open_board() as board:
                    reply = getattr(self, f"_{action}")(board, kwargs)
                    reply["data_slush"] = _signals(board)
            else:
                raise ValueError(
                    f"Kanban knows no action {action!r}; it knows list, add, move, update, delete."
                )
        except (ValueError, OSError) as error:
            return json.dumps({"status": "error", "message": str(error)}, ensure_ascii=False)
        return json.dumps({"status": "success", **reply}, ensure_ascii=False)

    def _list(self, given: dict[str, Any]) -> dict[str, Any]:
        board = _board()
        wanted = [_column(board, given["column"])] if given.get("column") else board["columns"]
        tasks = [task for task in board["tasks"] if task["column"] in wanted]
        lines = []
        for column in wanted:
            lines.append(f"**{column}**")
            lines += [f"- {task['title']} ({task['id']})" for task in tasks if task["column"] == column]
        message = (
            "\n".join(lines)
            if tasks
            else "Nothing is on the board."
            if len(wanted) > 1
            else f"{wanted[0]} is empty."
        )
        return {
            "message": message,
            "columns": board["columns"],
            "tasks": tasks,
            "data_slush": _signals(board),
        }

    def _add(self, board: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        now = datetime.now(UTC).isoformat(timespec="seconds")
        task = {
            "id": uuid.uuid4().hex[:8],
            "title": _WHERE.sub("", _text(given, "task", "title")),
            "description": _text(given, "details", "description"),
            "column": _column(board, given.get("column") or board["columns"][0]),
            "created_at": now,
            "updated_at": now,
        }
        if not task["title"]:
            raise ValueError("A task needs a title.")
        board["tasks"].append(task)
        return {"message": f'"{task["title"]}" is in {task["column"]}.', "task_id": task["id"]}

    def _move(self, board: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        task = _task(board, given)
        if not given.get("column"):
            raise ValueError(f"Which column? There are {', '.join(board['columns'])}.")
        task["column"] = _column(board, given["column"])
        board["tasks"].remove(task)  # a moved task goes to the end of its column
        board["tasks"].append(task)
        return _touched(task, f'"{task["title"]}" is in {task["column"]} now.')

    def _update(self, board: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        task = _task(board, given)
        task["title"] = _text(given, "title", "title") or task["title"]
        if given.get("details") is not None:
            task["description"] = _text(given, "details", "description")
        if given.get("column"):
            task["column"] = _column(board, given["column"])
        return _touched(task, f'"{task["title"]}" is changed.')

    def _delete(self, board: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
        task = _task(board, given)
        board["tasks"].remove(task)
        return {"message": f'"{task["title"]}" is deleted.', "task_id": task["id"], "tasks": [task]}


def _touched(task: dict[str, Any], message: str) -> dict[str, Any]:
    task["updated_at"] = datetime.now(UTC).isoformat(timespec="seconds")
    return {"message": message, "task_id": task["id"], "tasks": [task]}


def _task(board: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The task that is meant, by id or by title. Raises ``ValueError`` when none or several are."""
    wanted = _WHERE.sub("", str(given.get("task") or "").strip()).casefold()
    found = [task for task in board["tasks"] if wanted in (task["id"], task["title"].casefold())]
    found = found or [task for task in board["tasks"] if task["title"].casefold() in wanted]
    if len(found) != 1:
        several = ", ".join(task["id"] for task in found)
        raise ValueError(
            f"Several tasks are called so: {several}." if found else f"There is no task {wanted!r}."
        )
    task: dict[str, Any] = found[0]
    return task


def _column(board: dict[str, Any], wanted: Any) -> str:
    key = "".join(letter for letter in str(wanted).casefold() if letter.isalnum())
    for column in board["columns"]:
        if key == "".join(letter for letter in column.casefold() if letter.isalnum()):
            return str(column)
    raise ValueError(f"There is no column {wanted}; there are {', '.join(board['columns'])}.")


def _text(given: dict[str, Any], key: str, kind: str) -> str:
    text = str(given.get(key) or "").strip()
    if len(text) > _LONGEST[kind]:
        raise ValueError(f"The {key} has more than {_LONGEST[kind]} characters.")
    return text


def _signals(board: dict[str, Any]) -> dict[str, Any]:
    counts = {column: sum(task["column"] == column for task in board["tasks"]) for column in board["columns"]}
    return {"open": len(board["tasks"]) - counts[board["columns"][-1]], "columns": counts}


if __name__ == "__main__":
    sys.stdout.write(KanbanAgent().perform() + "\n")
