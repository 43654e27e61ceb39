"""The memory layer: what was remembered in words that the query repeats."""

from __future__ import annotations

from collections.abc import Sequence

from agents.slosh.layer import Layer
from agents.slosh.memory_index import Remembered

MOST = 3
MESSAGE_CHARS = 80
LEAST_SHARED_WORDS = 2


def memory_echoes(query: str, memories: Sequence[Remembered]) -> list[Layer]:
    """At most three ``{message (80 characters), theme, relevance}``, most relevant first.

    An echo shares two words with the query; relevance is their share of the query's different words.
    """
    words = set(query.lower().split())
    if len(words) < LEAST_SHARED_WORDS:
        return []
    found = []
    for memory in memories:
        shared = len(words.intersection(memory.words))
        if shared >= LEAST_SHARED_WORDS:
            found.append((shared, memory))
    found.sort(key=lambda echo: -echo[0])
    return [
        Layer(message=memory.message[:MESSAGE_CHARS], theme=memory.theme, relevance=shared / len(words))
        for shared, memory in found[:MOST]
    ]
