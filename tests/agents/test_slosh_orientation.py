from __future__ import annotations

from typing import Any

import pytest

from agents.slosh.derived_layers import orientation

CALM = {"is_urgent_period": False}
WORDY = {"prefers_brief": False}


def signals(specificity: str, *hints: str) -> dict[str, Any]:
    return {"specificity": specificity, "hints": list(hints)}


@pytest.mark.parametrize(
    ("specificity", "priors", "confidence", "approach"),
    [
        ("high", {"x": {}}, "high", "direct"),
        ("medium", {"x": {}}, "high", "use_preference"),
        ("low", {"x": {}}, "high", "use_preference"),
        ("medium", {}, "medium", "contextual"),
        ("low", {}, "low", "clarify"),
    ],
)
def test_the_approach(specificity: str, priors: dict[str, Any], confidence: str, approach: str) -> None:
    found = orientation(CALM, signals(specificity), WORDY, priors)
    assert (found.confidence, found.approach, found.hints) == (confidence, approach, [])


def test_the_hints_in_their_order() -> None:
    given = signals("medium", "temporal:today", "temporal:recency", "temporal:past", "ownership:user")
    assert orientation({"is_urgent_period": True}, given, WORDY, {})["hints"] == [
        "Sort by most recent",
        "Filter by current user",
        "Focus on today's items",
        "Quarter/year end - prioritize closing activities",
    ]


def test_the_style_follows_the_reader() -> None:
    assert orientation(CALM, signals("low"), {"prefers_brief": True}, {})["response_style"] == "concise"
    assert orientation(CALM, signals("low"), WORDY, {})["response_style"] == "standard"
