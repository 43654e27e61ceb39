"""The query layer: what the wording of a request gives away."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from agents.slosh.layer import Layer

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
