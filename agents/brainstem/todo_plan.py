"""The plan of a listener that a model drives: what it said that it waits for, until that came or was given up."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

import msgspec

from agents.errors import AgentError

MOST = 64
"""Entries of one thread's plan."""
State = Literal["open", "came", "given up"]


class Todo(msgspec.Struct):
    """An entry of a plan. ``wait_for`` is the root of a payload, or the name of the listener that answers; ``from_listener`` is "" where any may."""

    id: str
    wait_for: str
    from_listener: str = ""
    description: str = ""
    state: State = "open"

    @property
    def text(self) -> str:
        """The entry in words."""
        by = f" from {self.from_listener}" if self.from_listener else ""
        return self.description or f"Wait for {self.wait_for}{by}"


class TodoPlan:
    """The plan of one listener on one thread, in the order in which it was made. Each change goes to ``changed``."""

    def __init__(self, known: Iterable[Mapping[str, Any]], changed: Callable[[Todo], None]) -> None:
        """``known`` are the entries as they were recorded, the latest state of one last."""
        self._changed = changed
        self._todos: dict[str, Todo] = {}
        for one in known:
            try:
                todo = msgspec.convert(one, Todo)
            except msgspec.ValidationError:
                continue
            self._todos[todo.id] = todo

    @property
    def todos(self) -> list[Todo]:
        """All entries."""
        return list(self._todos.values())

    @property
    def open(self) -> list[Todo]:
        """The todos that are waited for."""
        return [one for one in self._todos.values() if one.state == "open"]

    def add(self, wait_for: str, from_listener: str = "", description: str = "") -> Todo:
        """Adds an entry. Raises ``no_such_todo`` for one too many."""
        if len(self._todos) >= MOST:
            raise AgentError(
                f"A plan has {MOST} entries at most.", do="Do what is open first.", code="no_such_todo"
            )
        todo = Todo(str(len(self._todos) + 1), wait_for, from_listener, description)
        self._todos[todo.id] = todo
        self._changed(todo)
        return todo

    def end(self, id: str) -> Todo:
        """Gives an open entry up. Raises ``no_such_todo``."""
        todo = self._todos.get(id.strip())
        if todo is None or todo.state != "open":
            names = ", ".join(one.id for one in self.open) or "none"
            raise AgentError(f"There is no open todo {id[:20]!r}.", do=f"Open: {names}.", code="no_such_todo")
        return self._settle(todo, "given up")

    def saw(self, root: str, listener: str) -> None:
        """Ends entries that waited for a payload of that root, or an answer of that name, of ``listener``."""
        for todo in self.open:
            wanted = todo.wait_for.casefold()
            if wanted not in (root.casefold(), listener.casefold()):
                continue
            if todo.from_listener.casefold() in ("", listener.casefold()):
                self._settle(todo, "came")

    def reminder(self) -> str:
        """The words that the model gets while something is open."""
        lines = [f"- {one.id}: {one.text} (waits for {one.wait_for})" for one in self.open]
        return "\n".join(
            ["You still wait for:", *lines, "Go on, or give it up with todo_complete, by its number."]
        )

    def _settle(self, todo: Todo, state: State) -> Todo:
        todo.state = state
        self._changed(todo)
        return todo
