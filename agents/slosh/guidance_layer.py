"""The orientation: how to go about a request, concluded from the other layers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents.slosh.layer import Layer


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
