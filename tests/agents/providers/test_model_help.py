"""For which models keyword matching chooses agents, how sure it must be, and which wordings of results are kept."""

from __future__ import annotations

import pytest

from agents.providers.model_help import (
    Ground,
    Help,
    ModelTraits,
    Outcome,
    can_word,
    help_for,
    is_sure,
    keeps,
    offers_tools,
    size_in_name,
)

CALLED, WRONG, MISSED = Outcome.CALLED, Outcome.WRONG, Outcome.MISSED


@pytest.mark.parametrize(
    ("mode", "traits", "outcomes", "wanted"),
    [
        ("auto", ModelTraits(billions=0.135, here=True), (), Help.SECOND),
        ("auto", ModelTraits(billions=3.2), (), Help.SECOND),
        ("auto", ModelTraits(billions=8.0, here=True), (), Help.NONE),
        ("auto", ModelTraits(here=True), (), Help.SECOND),  # nobody told how large it is
        ("auto", ModelTraits(), (), Help.NONE),
        ("auto", ModelTraits(tools=False, billions=70), (), Help.FIRST),
        ("auto", ModelTraits(billions=8.0), (CALLED, WRONG), Help.NONE),
        ("auto", ModelTraits(billions=8.0), (WRONG, CALLED, MISSED), Help.SECOND),
        ("auto", ModelTraits(billions=0.5), (MISSED,) * 2, Help.SECOND),
        ("auto", ModelTraits(billions=0.5), (MISSED,) * 3, Help.FIRST),
        ("auto", ModelTraits(billions=0.5), (CALLED, *(MISSED,) * 7), Help.SECOND),
        ("always", ModelTraits(billions=400), (), Help.SECOND),
        ("always", ModelTraits(tools=False), (), Help.FIRST),
        ("never", ModelTraits(tools=False, billions=0.1, here=True), (MISSED,) * 8, Help.NONE),
    ],
)
def test_which_models_are_helped(
    mode: str, traits: ModelTraits, outcomes: tuple[Outcome, ...], wanted: Help
) -> None:
    assert help_for(mode, traits, outcomes) is wanted


@pytest.mark.parametrize(
    ("mode", "traits", "wanted"),
    [
        ("auto", ModelTraits(tools=False, billions=0.135), False),
        ("always", ModelTraits(tools=False, here=True), False),
        ("never", ModelTraits(tools=False, billions=0.135), True),
        ("auto", ModelTraits(tools=False, billions=8), True),
        ("auto", ModelTraits(billions=0.135), True),
    ],
)
def test_which_models_are_offered_agents(mode: str, traits: ModelTraits, wanted: bool) -> None:
    assert offers_tools(mode, traits) is wanted


@pytest.mark.parametrize(
    ("ground", "score", "structural", "wanted"),
    [
        (Ground.NAMED, 10.0, False, True),
        (Ground.EXAMPLE, 1.4, False, True),
        (Ground.REMEMBER, 1.5, False, True),
        (Ground.RECALL, 0.0, False, True),
        (Ground.WORDS, 2.5, False, True),
        (Ground.WORDS, 2.4, False, False),
        (Ground.NAMED, 10.0, True, True),
        (Ground.EXAMPLE, 3.0, True, True),
        (Ground.WORDS, 9.0, True, False),  # likely is not enough for what changes the machine
        (Ground.REMEMBER, 9.0, True, False),
    ],
)
def test_how_sure_a_choice_must_be(ground: Ground, score: float, structural: bool, wanted: bool) -> None:
    assert is_sure(ground, score, structural=structural) is wanted


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("SmolLM2-135M-Instruct.Q4_1.gguf", 0.135),
        ("qwen2.5:0.5b", 0.5),
        ("llama3.2:1b-instruct-q4_K_M", 1.0),
        ("Qwen3-30B-A3B", 30.0),
        ("mixtral-8x7b", 56.0),
        ("google/gemma-3-270m-it", 0.27),
        ("gpt-4o", 0.0),
        ("phi-4-mini", 0.0),
        ("model-q4b2", 0.0),
    ],
)
def test_size_in_a_models_name(name: str, billions: float) -> None:
    assert size_in_name(name) == pytest.approx(billions)


@pytest.mark.parametrize(
    ("result", "wording", "question", "kept"),
    [
        ("the boiler is serviced in May", "The boiler is serviced in May.", "when is the boiler serviced?", True),
        ("the boiler is serviced in May", "The boiler is serviced in 1987.", "when is the boiler serviced?", False),
        ("the boiler is serviced in May", "The boiler is serviced every year.", "when is the boiler serviced?", False),
        ("the boiler is serviced in May", "", "when is the boiler serviced?", False),
        ("84", "12 * 7 is 84.", "what is 12 * 7?", True),
        ("84", "12 * 7 = 90", "what is 12 * 7?", False),
        ("84", "The answer is 12 * 7.", "what is 12 * 7?", False),
        ("Berlin: rain, 14 °C", "It rains in Berlin, at 14 °C.", "will it rain in Berlin?", True),
        ("Berlin: rain, 14 °C", "No, it will not.", "will it rain in Berlin?", False),
    ],
)  # fmt: skip
def test_wordings_that_keep_what_an_agent_returned(
    result: str, wording: str, question: str, kept: bool
) -> None:
    assert keeps(result, wording, question) is kept


def test_only_a_model_of_some_size_words_a_long_result() -> None:
    assert not can_word("x" * 2000, ModelTraits(billions=0.135))
    assert can_word("x" * 2000, ModelTraits(billions=8))
    assert can_word("short", ModelTraits(billions=0.135))
