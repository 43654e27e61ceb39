"""Layers computed from a query, the clock and the memories: query, memory, behavior, temporal, guidance."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from agents.slosh.layer_names import Layer

QUERY_ARGUMENTS = ("query", "request", "user_input")


def query_text(arguments: Mapping[str, Any]) -> str:
    """The first of query, request, user_input that is not None; "" when that is not a string."""
    for name in QUERY_ARGUMENTS:
        value = arguments.get(name)
        if value is not None:
            return value if isinstance(value, str) else ""
    return ""


def query_signals(query: str) -> Layer:
    """``{specificity, hints, word_count, is_question, has_id_pattern}``; the first two for an empty query.

    ``specificity`` is high with an id in the query, medium with two hints or a whole number, else low.
    """
    if not query:
        return Layer(specificity="low", hints=[])
    text = query.lower()
    hints = _hints(text)
    has_id = _ID.search(text) is not None
    if has_id:
        specificity = "high"
    elif len(hints) >= 2 or _WHOLE_NUMBER.search(text):
        specificity = "medium"
    else:
        specificity = "low"
    return Layer(
        specificity=specificity,
        hints=hints,
        word_count=len(query.split()),
        is_question="?" in text or _QUESTION.match(text) is not None,
        has_id_pattern=has_id,
    )


_ID = re.compile(r"[0-9a-f]{8}-")
_WHOLE_NUMBER = re.compile(r"\b\d+\b")
_QUESTION = re.compile(r"\s*(?:what|when|where|which|who|whose|why|how)\b")
_QUARTER = re.compile(r"q[1-4]")
_WORD = re.compile(r"\w+")

# Parts of words count ("know" holds "now"): published agents were written against that.
_TIMES = (
    ("temporal:today", ("today", "this morning", "now")),
    ("temporal:recency", ("latest", "recent", "current", "active")),
    ("temporal:past", ("yesterday", "last week", "previous")),
)
_OWNERS = (
    ("ownership:user", frozenset({"my", "mine"})),
    ("ownership:team", frozenset({"our", "team"})),
)


def _hints(text: str) -> list[str]:
    hints = [hint for hint, parts in _TIMES if any(part in text for part in parts)]
    if _QUARTER.search(text):
        hints.append("temporal:quarterly")
    words = _WORD.findall(text)
    hints.extend(hint for hint, owners in _OWNERS if not owners.isdisjoint(words))
    return hints


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


def orientation(
    temporal: Mapping[str, Any],
    signals: Mapping[str, Any],
    behavioral: Mapping[str, Any],
    priors: Mapping[str, Any],
) -> Layer:
    """``{confidence, approach: direct|use_preference|contextual|clarify, hints, response_style}``."""
    if signals["specificity"] == "high":
        confidence, approach = "high", "direct"
    elif priors:
        confidence, approach = "high", "use_preference"
    elif signals["specificity"] == "medium":
        confidence, approach = "medium", "contextual"
    else:
        confidence, approach = "low", "clarify"
    return Layer(
        confidence=confidence,
        approach=approach,
        hints=_advice(signals["hints"], temporal["is_urgent_period"]),
        response_style="concise" if behavioral["prefers_brief"] else "standard",
    )


_ADVICE = (
    ("temporal:recency", "Sort by most recent"),
    ("ownership:user", "Filter by current user"),
    ("temporal:today", "Focus on today's items"),
)


def _advice(hints: list[str], urgent: bool) -> list[str]:
    advice = [text for hint, text in _ADVICE if hint in hints]
    if urgent:
        advice.append("Quarter/year end - prioritize closing activities")
    return advice


_DAY_PARTS = (
    (range(5, 9), "early_morning", "preparing_for_day"),
    (range(9, 12), "morning", "active_work"),
    (range(12, 17), "afternoon", "follow_ups"),
    (range(17, 21), "evening", "wrap_up"),
)


def temporal(moment: datetime) -> Layer:
    """``{time_of_day, day_of_week, is_weekend, quarter, fiscal, likely_activity, is_urgent_period}``."""
    time_of_day, activity = _day_part(moment.hour)
    fiscal = _fiscal(moment.month, moment.day)
    return Layer(
        time_of_day=time_of_day,
        day_of_week=_WEEKDAYS[moment.weekday()],
        is_weekend=moment.weekday() >= 5,
        quarter=f"Q{(moment.month - 1) // 3 + 1}",
        fiscal=fiscal,
        likely_activity=activity,
        is_urgent_period=fiscal in ("quarter_end_push", "year_end"),
    )


# Spelled here: strftime would answer in the machine's language.
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _day_part(hour: int) -> tuple[str, str]:
    for hours, name, activity in _DAY_PARTS:
        if hour in hours:
            return name, activity
    return "night", "after_hours"


def _fiscal(month: int, day: int) -> str:
    if month in (1, 4, 7, 10) and day <= 15:
        return "quarter_start"
    if month in (3, 6, 9, 12) and day >= 15:
        return "quarter_end_push"
    if month == 12:
        return "year_end"
    return "mid_quarter"
