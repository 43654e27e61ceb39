"""The behavioral layer and the priors: what the memories say about the one who asks."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agents.slosh.layer import Layer
from agents.slosh.memory_echoes import remembered

BRIEF_BELOW_WORDS = 15
ADVANCED_ABOVE = 3
PRIOR_CONFIDENCE = 0.85

_TECHNICAL = re.compile(r"api|schema|guid|crud")
_PREFERS = re.compile(r"\bprefers\s+(.+?)\s+for\b", re.IGNORECASE | re.DOTALL)


def behavioral(memories: Mapping[str, Any]) -> Layer:
    """``{prefers_brief, technical_level: standard|intermediate|advanced, frequent_entities}``."""
    messages = [message for message, _ in remembered(memories)]
    words = sum(len(message.split()) for message in messages)
    technical = sum(1 for message in messages if _TECHNICAL.search(message.lower()))
    if technical > ADVANCED_ABOVE:
        level = "advanced"
    else:
        level = "intermediate" if technical else "standard"
    return Layer(
        prefers_brief=bool(messages) and words / len(messages) < BRIEF_BELOW_WORDS,
        technical_level=level,
        frequent_entities=[],
    )


def priors(query: str, memories: Mapping[str, Any]) -> Layer:
    """``{word: {preferred, confidence}}`` for the query's words that a remembered preference speaks of.

    A preference is a memory of that theme, worded "… prefers X for …"; the latest one wins.
    """
    words = [word for word in query.lower().split() if len(word) > 3]
    found = Layer()
    if not words:
        return found
    for message, theme in remembered(memories):
        stated = _PREFERS.search(message) if theme == "preference" else None
        if stated is None:
            continue
        text = message.lower()
        for word in words:
            if word in text:
                found[word] = Layer(preferred=stated[1], confidence=PRIOR_CONFIDENCE)
    return found
