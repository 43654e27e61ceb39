"""Limits that a model was found to have, in words; near names of a model that is not there."""

from __future__ import annotations

import pytest

from agents.providers.abilities import Abilities, limits
from agents.providers.model_names import nearest
from agents.providers.pictures import says_blind


@pytest.mark.parametrize(
    ("abilities", "sees", "parts"),
    [
        (Abilities(), None, []),
        (Abilities(), True, []),
        (Abilities(), False, ["pictures"]),
        (Abilities(tools=False), None, ["tools"]),
        (
            Abilities(tools=False, tool_stream=False),
            None,
            ["tools"],
        ),  # it is offered none, so none is streamed
        (Abilities(tool_stream=False, system=False), None, ["tool_stream", "system"]),
        (
            Abilities(repeated_roles=False, stream_usage=False),
            False,
            ["repeated_roles", "stream_usage", "pictures"],
        ),
    ],
)
def test_every_limit_is_told_and_none_that_makes_no_difference(
    abilities: Abilities, sees: bool | None, parts: list[str]
) -> None:
    found = limits(abilities, sees)
    assert [limit.part for limit in found] == parts
    assert all(limit.text for limit in found)


@pytest.mark.parametrize(
    ("sentence", "blind"),
    [
        ("image input is not supported", True),
        ("This model does not support image input.", True),
        ("No endpoints found that support image input", True),
        ("this model is missing data required for image input: mmproj", True),
        ("Unsupported image format: webp", False),
        ("Invalid image: cannot decode", False),
        ("image is too large; at most 5 MB are supported", False),
        ("unsupported media type for image", False),
    ],
)
def test_refusal_of_one_picture_makes_no_model_blind(sentence: str, blind: bool) -> None:
    assert says_blind(sentence) is blind


MANY = [f"model-{number}" for number in range(20)]


@pytest.mark.parametrize(
    ("typed", "listed", "told"),
    [
        ("lama3.2", ["llama3.2:3b", "qwen3:8b"], "did you mean llama3.2:3b?"),
        ("GPT-4O", ["gpt-4o", "o1"], "did you mean gpt-4o?"),
        ("qwen", ["org/qwen3-8b-instruct-q4_k_m", "gemma"], "did you mean org/qwen3-8b-instruct-q4_k_m?"),
        ("zzz", ["small", "big"], "there are: small, big"),
        ("zzz", MANY, "rappd models list"),
    ],
)
def test_near_names_are_told_else_what_there_is(typed: str, listed: list[str], told: str) -> None:
    assert nearest(typed, listed) == told
