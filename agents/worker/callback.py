"""How code in a worker asks the daemon for something only the daemon has, such as a model turn."""

from __future__ import annotations

from typing import Any

from agents.worker.line import CallbackRefused, Line

__all__ = ["CallbackRefused", "call"]

_line: Line | None = None


def call(operation: str, arguments: dict[str, Any]) -> Any:
    """Wait for the daemon to perform ``operation``; returns its JSON answer.

    Raises CallbackRefused when nobody handles callbacks of the current request, when none is being
    performed, or with the daemon's own words when the operation failed there.
    """
    if _line is None:
        raise CallbackRefused("there is no daemon to call back: this code does not run in a worker")
    return _line.ask(operation, arguments)


def open_line(line: Line) -> None:
    """Use ``line`` for callbacks from now on (the worker does this once, before it loads any agent)."""
    global _line
    _line = line
