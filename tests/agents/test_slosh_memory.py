from __future__ import annotations

from typing import Any

import pytest

from agents.slosh.derived_layers import Remembered, behavioral, memory_echoes, priors, remembered


def memories(*entries: tuple[str, str]) -> list[Remembered]:
    return remembered(
        {str(number): {"message": text, "theme": theme} for number, (text, theme) in enumerate(entries)}
    )


def test_an_echo_shares_two_words_and_says_how_relevant_it_is() -> None:
    kept = memories(("the red apple tree", "fact"), ("a red car", "fact"), ("nothing", "task"))
    assert memory_echoes("Red apple pie recipe", kept) == [
        {"message": "the red apple tree", "theme": "fact", "relevance": 0.5}
    ]


def test_three_echoes_at_most_best_first_eighty_characters() -> None:
    kept = memories(("a b", "1"), ("a b c " + "x" * 100, "2"), ("b c", "3"), ("a b c d", "4"), ("c d", "5"))
    echoes = memory_echoes("a b c d", kept)
    assert [echo["theme"] for echo in echoes] == ["4", "2", "1"]
    assert len(echoes[1]["message"]) == 80
    assert [echo.relevance for echo in echoes] == [1.0, 0.75, 0.5]


def test_repeated_words_count_once() -> None:
    assert memory_echoes("apple apple", memories(("apple apple", "fact"))) == []


@pytest.mark.parametrize("entry", [None, "text", 5, {"message": 7}, {"theme": "fact"}, []])
def test_entries_of_other_shapes_are_passed_over(entry: Any) -> None:
    kept = remembered({"odd": entry, "1": {"message": "red apple", "theme": 7}})
    assert len(memory_echoes("red apple", kept)) == 1
    assert behavioral(kept)["prefers_brief"] is True
    assert priors("apple", kept) == {}


def test_without_memories_everything_is_at_its_default() -> None:
    assert memory_echoes("red apple", []) == []
    assert behavioral([]) == {"prefers_brief": False, "technical_level": "standard", "frequent_entities": []}
    assert priors("red apple", []) == {}


def test_brief_is_a_mean_below_fifteen_words() -> None:
    fifteen = " ".join(["word"] * 15)
    assert behavioral(memories((fifteen, "")))["prefers_brief"] is False
    assert behavioral(memories((fifteen, ""), ("short", "")))["prefers_brief"] is True


@pytest.mark.parametrize(
    ("count", "level"), [(0, "standard"), (1, "intermediate"), (3, "intermediate"), (4, "advanced")]
)
def test_the_technical_level_counts_messages(count: int, level: str) -> None:
    kept = memories(("plain talk", ""), *[("The API and its schema", "")] * count)
    assert behavioral(kept)["technical_level"] == level


def test_stated_preference_is_prior_for_its_words() -> None:
    kept = memories(
        ("The user prefers dark mode for editors", "preference"),
        ("Ann prefers tea for breakfast", "fact"),
        ("likes editors", "preference"),
    )
    assert priors("open my Editors for breakfast", kept) == {
        "editors": {"preferred": "dark mode", "confidence": 0.85}
    }


def test_three_letter_words_have_no_prior_and_latest_wins() -> None:
    kept = memories(("prefers x for tea cake", "preference"), ("prefers y for tea cake", "preference"))
    assert priors("tea cake", kept) == {"cake": {"preferred": "y", "confidence": 0.85}}
