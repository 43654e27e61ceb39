from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.slosh.derived_layers import query_signals, query_text


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
