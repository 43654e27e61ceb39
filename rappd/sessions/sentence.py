"""A sentence that somebody says in a session."""

from __future__ import annotations

from dataclasses import dataclass

MOST_TEXT = 100_000


@dataclass(frozen=True, slots=True)
class Say:
    """Ask a participant; ``to`` is a name or ""."""

    event_id: str
    text: str
    to: str
    via: str = ""
    """``mic``: it interrupts a workflow."""


def unfit(text: str) -> str:
    """The reason why a text is no sentence; "" for one that is."""
    if not text.strip():
        return "There is nothing to send."
    if len(text) > MOST_TEXT:
        return f"More than {MOST_TEXT} characters cannot be sent at once."
    return ""
