"""The memory layer: what was remembered in words that the query repeats."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agents.slosh.layer import Layer

MOST = 3
MESSAGE_CHARS = 80
LEAST_SHARED_WORDS = 2


def remembered(memories: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """``(message, theme)`` of every usable entry of a memory store, in its order."""
    for entry in memories.values():
        if isinstance(entry, Mapping):
            message = entry.get("message")
            theme = entry.get("theme")
            if isinstance(message, str):
                yield message, theme if isinstance(theme, str) else ""


def memory_echoes(query: str, memories: Mapping[str, Any]) -> list[Layer]:
    """At most three ``{message (80 characters), theme, relevance}``, most relevant first.

    An echo shares two words with the query; relevance is their share of the query's different words.
    """
    words = set(query.lower().split())
    if len(words) < LEAST_SHARED_WORDS:
        return []
    found = []
    for message, theme in remembered(memories):
        shared = len(words.intersection(message.lower().split()))
        if shared >= LEAST_SHARED_WORDS:
            found.append((shared, message, theme))
    found.sort(key=lambda echo: -echo[0])
    return [
        Layer(message=message[:MESSAGE_CHARS], theme=theme, relevance=shared / len(words))
        for shared, message, theme in found[:MOST]
    ]
