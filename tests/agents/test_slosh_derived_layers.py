"""Signals, hours and orientation of the context that an agent starts with."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.slosh.derived_layers import orientation, query_signals, query_text, temporal


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"query": "a", "request": "b", "user_input": "c"}, "a"),
        ({"query": None, "request": "b", "user_input": "c"}, "b"),
        ({"user_input": "c"}, "c"),
        ({"query": "", "request": "b"}, ""),
        ({"query": 5, "request": "b"}, ""),
        ({"topic": "x"}, ""),
        ({}, ""),
    ],
)
def test_the_first_given_of_three_arguments_is_the_query(arguments: dict[str, Any], text: str) -> None:
    assert query_text(arguments) == text


def test_an_empty_query_has_two_signals_only() -> None:
    assert query_signals("") == {"specificity": "low", "hints": []}


@pytest.mark.parametrize(
    ("query", "hints"),
    [
        ("what is due today", ["temporal:today"]),
        ("this morning please", ["temporal:today"]),
        ("do you know him", ["temporal:today"]),  # a part of a word counts
        ("the latest deals", ["temporal:recency"]),
        ("inactive users", ["temporal:recency"]),
        ("since yesterday", ["temporal:past"]),
        ("last week", ["temporal:past"]),
        ("FAQ4 page", ["temporal:quarterly"]),
        ("q5", []),
        ("My list", ["ownership:user"]),
        ("is it mine?", ["ownership:user"]),
        ("myself", []),
        ("our team", ["ownership:team"]),
        ("hours and teams", []),
        (
            "our and my previous q3 recent work today",
            [
                "temporal:today",
                "temporal:recency",
                "temporal:past",
                "temporal:quarterly",
                "ownership:user",
                "ownership:team",
            ],
        ),
    ],
)
def test_hints_come_in_their_order(query: str, hints: list[str]) -> None:
    assert query_signals(query)["hints"] == hints


@pytest.mark.parametrize(
    ("query", "specificity"),
    [
        ("open 1A2b3C4d-e5", "high"),
        ("open 1a2b3c4-e5", "low"),
        ("my latest", "medium"),
        ("the latest", "low"),
        ("show 5 items", "medium"),
        ("show item5", "low"),
        ("hello", "low"),
    ],
)
def test_specificity(query: str, specificity: str) -> None:
    signals = query_signals(query)
    assert signals["specificity"] == specificity
    assert signals["has_id_pattern"] is (specificity == "high")


def test_words_are_counted_and_questions_known() -> None:
    assert query_signals("one  two three")["word_count"] == 3
    assert query_signals("How warm is it")["is_question"] is True
    assert query_signals("is it warm?")["is_question"] is True
    assert query_signals("however warm")["is_question"] is False


@given(st.text(min_size=1))
def test_any_text_has_signals(query: str) -> None:
    signals = query_signals(query)
    assert set(signals) == {"specificity", "hints", "word_count", "is_question", "has_id_pattern"}
    assert signals["specificity"] in ("low", "medium", "high")


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


@pytest.mark.parametrize(
    ("hour", "time_of_day", "activity"),
    [
        (4, "night", "after_hours"),
        (5, "early_morning", "preparing_for_day"),
        (8, "early_morning", "preparing_for_day"),
        (9, "morning", "active_work"),
        (11, "morning", "active_work"),
        (12, "afternoon", "follow_ups"),
        (16, "afternoon", "follow_ups"),
        (17, "evening", "wrap_up"),
        (20, "evening", "wrap_up"),
        (21, "night", "after_hours"),
        (0, "night", "after_hours"),
    ],
)
def test_the_hour_decides_the_part_of_the_day(hour: int, time_of_day: str, activity: str) -> None:
    layer = temporal(datetime(2026, 5, 20, hour, 59))
    assert (layer["time_of_day"], layer["likely_activity"]) == (time_of_day, activity)


@pytest.mark.parametrize(
    ("month", "day", "fiscal", "quarter", "urgent"),
    [
        (1, 1, "quarter_start", "Q1", False),
        (1, 15, "quarter_start", "Q1", False),
        (1, 16, "mid_quarter", "Q1", False),
        (3, 14, "mid_quarter", "Q1", False),
        (3, 15, "quarter_end_push", "Q1", True),
        (4, 15, "quarter_start", "Q2", False),
        (5, 10, "mid_quarter", "Q2", False),
        (6, 30, "quarter_end_push", "Q2", True),
        (7, 2, "quarter_start", "Q3", False),
        (9, 20, "quarter_end_push", "Q3", True),
        (10, 3, "quarter_start", "Q4", False),
        (12, 14, "year_end", "Q4", True),
        (12, 15, "quarter_end_push", "Q4", True),
    ],
)
def test_the_date_decides_the_fiscal_period(
    month: int, day: int, fiscal: str, quarter: str, urgent: bool
) -> None:
    layer = temporal(datetime(2026, month, day, 10))
    assert (layer["fiscal"], layer["quarter"], layer["is_urgent_period"]) == (fiscal, quarter, urgent)


def test_weekdays_and_attributes() -> None:
    assert temporal(datetime(2026, 11, 21)).day_of_week == "Saturday"
    assert temporal(datetime(2026, 11, 21)).is_weekend is True
    assert temporal(datetime(2026, 11, 23)).is_weekend is False
    with pytest.raises(AttributeError, match="season"):
        _ = temporal(datetime(2026, 11, 23)).season
