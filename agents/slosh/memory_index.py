"""The memory store as sloshing reads it: its messages, taken apart once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Remembered(NamedTuple):
    """One memory. ``text`` is the message in lower case, ``words`` that text at its white space."""

    message: str
    theme: str
    text: str
    words: list[str]


def remembered(memories: Mapping[str, Any]) -> list[Remembered]:
    """Every usable entry of a store ``{id: {message, theme, …}}``, in its order."""
    found = []
    for entry in memories.values():
        message = entry.get("message") if isinstance(entry, dict) else None
        if isinstance(message, str):
            theme = entry.get("theme")
            text = message.lower()
            found.append(Remembered(message, theme if isinstance(theme, str) else "", text, text.split()))
    return found
