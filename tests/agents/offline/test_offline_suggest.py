"""A suggestion is something that works when typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from agents.providers.offline.responses import suggest
from agents.providers.offline.route import route

CORPUS = orjson.loads((Path(__file__).parent / "corpus.json").read_bytes())
TOOLS = [{"type": "function", "function": agent} for agent in CORPUS["agents"]]


@pytest.mark.parametrize("tool", TOOLS, ids=[tool["function"]["name"] for tool in TOOLS])
@pytest.mark.parametrize("company", [TOOLS, None], ids=["among all", "alone"])
def test_what_is_suggested_reaches_the_agent(
    tool: dict[str, Any], company: list[dict[str, Any]] | None
) -> None:
    said = suggest(tool, company)
    decision = route(said, company or [tool])
    assert decision.name == tool["function"]["name"]
    assert decision.ready or said.endswith("…")
    assert len(said) < 80


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("HackerNews", "hacker news?"),
        ("Weather", "will it rain in Berlin?"),
        ("Dice", "roll two dice"),
        ("GitHelper", "git status"),
        ("UuidMaker", "create random UUIDs"),
        ("FileSearch", "file search *.pdf"),
    ],
)
def test_suggestions_read_like_something_one_would_type(name: str, said: str) -> None:
    [tool] = [tool for tool in TOOLS if tool["function"]["name"] == name]
    assert suggest(tool, TOOLS) == said


def test_weather_that_needs_no_city_is_asked_for_rain() -> None:
    tool = {"type": "function", "function": {"name": "Weather", "description": "Tells the weather here."}}
    assert suggest(tool) == "will it rain?"


def test_a_suggestion_that_another_agent_would_take_is_not_made() -> None:
    one = {"type": "function", "function": {"name": "Dice", "description": "Rolls dice."}}
    other = {"type": "function", "function": {"name": "DiceStatistics", "description": "Explains dice odds."}}
    for tool in (one, other):
        assert route(suggest(tool, [one, other]), [one, other]).name == tool["function"]["name"]


def test_a_nameless_tool_has_no_suggestion() -> None:
    assert suggest({"type": "function", "function": {}}) == ""
