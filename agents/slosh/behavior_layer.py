"""The behavioral layer and the priors: what the memories say about the one who asks."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agents.slosh.layer import Layer
from agents.slosh.memory_index import Remembered

BRIEF_BELOW_WORDS = 15
ADVANCED_ABOVE = 3
PRIOR_CONFIDENCE = 0.85

_TECHNICAL = ("api", "schema", "guid", "crud")
_PREFERS = re.compile(r"\bprefers\s+(.+?)\s+for\b", re.IGNORECASE | re.DOTALL)


def behavioral(memories: Sequence[Remembered]) -> Layer:
    """``{prefers_brief, technical_level: standard|intermediate|advanced, frequent_entities}``."""
    words = sum(len(memory.words) for memory in memories)
    technical = sum(1 for memory in memories if any(word in memory.text for word in _TECHNICAL))
    if technical > ADVANCED_ABOVE:
        level = "advanced"
    else:
        level = "intermediate" if technical else "standard"
    return Layer(
        prefers_brief=bool(memories) and words / len(memories) < BRIEF_BELOW_WORDS,
        technical_level=level,
        frequent_entities=[],
    )


def priors(query: str, memories: Sequence[Remembered]) -> Layer:
    """``{word: {preferred, confidence}}`` for the query's words that a remembered preference speaks of.

    A preference is a memory of that theme, worded "… prefers X for …"; the latest one wins.
    """
    words = [word for word in query.lower().split() if len(word) > 3]
    found = Layer()
    if not words:
        return found
    for memory in memories:
        stated = _PREFERS.search(memory.message) if memory.theme == "preference" else None
        if stated is None:
            continue
        for word in words:
            if word in memory.text:
                found[word] = Layer(preferred=stated[1], confidence=PRIOR_CONFIDENCE)
    return found
