"""The text that a person reads of an agent's result, and suggestions that work when typed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.contract.readable_results import present
from agents.providers.offline.responses import suggest
from agents.providers.offline.route import route


def shown(value: Any) -> str:
    return present([("HackerNews", value if isinstance(value, str) else orjson.dumps(value).decode())])


def test_stories_come_as_a_summary_and_numbered_lines() -> None:
    text = shown(
        {
            "status": "success",
            "summary": "Two stories today.",
            "stories": [
                {"id": 1, "title": "A fast parser", "url": "https://a.example", "score": 10},
                {"id": 2, "title": "On rain", "url": "https://b.example", "score": 9},
            ],
            "data_slush": {"count": 2, "top_url": "https://a.example"},
        }
    )
    assert text == "Two stories today.\n\n1. A fast parser https://a.example\n2. On rain https://b.example"


def test_a_list_alone_needs_no_heading() -> None:
    assert shown({"stories": [{"title": "One", "url": "https://x.example"}]}) == "1. One https://x.example"
    assert shown([{"name": "a"}, {"name": "b"}]) == "1. a\n2. b"
    assert shown(["milk", "eggs"]) == "- milk\n- eggs"


def test_a_list_that_the_summary_already_tells_is_not_told_twice() -> None:
    text = shown({"summary": "Top: One and Two", "stories": [{"title": "One"}, {"title": "Two"}]})
    assert text == "Top: One and Two"


@pytest.mark.parametrize("key", ["summary", "message", "result", "response", "output", "content", "answer"])
def test_the_main_text_comes_first(key: str) -> None:
    assert shown({"city": "Berlin", key: "It rains.", "status": "ok"}) == "It rains.\n\ncity: Berlin"


def test_values_that_the_text_tells_are_not_repeated() -> None:
    assert shown({"result": "Rolled 3 and 4: 7", "rolls": [3, 4], "total": 7}) == "Rolled 3 and 4: 7"


def test_inner_housekeeping_stays_hidden() -> None:
    text = shown(
        {"message": "Done.", "status": "success", "data_slush": {"secret": 1}, "_trace": "x", "success": True}
    )
    assert text == "Done."


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"status": "error", "message": "no network"}, "HackerNews failed: no network"),
        ({"error": "city not found"}, "HackerNews failed: city not found"),
        ({"error": {"message": "quota used up", "code": 429}}, "HackerNews failed: quota used up"),
        ({"success": False, "message": "disk full"}, "HackerNews failed: disk full"),
        ({"status": "error"}, "HackerNews failed: it gave no reason."),
        ("Error: division by zero", "HackerNews failed: division by zero"),
    ],
)
def test_errors_are_said_plainly(value: Any, told: str) -> None:
    assert shown(value) == told


def test_no_error_is_made_out_of_an_empty_error_field() -> None:
    assert shown({"error": None, "result": "fine"}) == "fine"


def test_plain_text_and_markdown_stay_as_they_are() -> None:
    text = "# Title\n\n- **bold** [link](https://example.org)\n\n```py\nprint(1)\n```"
    assert shown(text) == text
    assert shown({"content": text}) == text
    assert shown("{not json") == "{not json"
    assert shown('"quoted"') == "quoted"
    assert shown("[x] a task") == "[x] a task"


def test_nothing_returned_is_said() -> None:
    assert shown("") == "HackerNews returned nothing."
    assert shown({"status": "success"}) == "HackerNews is done and returned nothing to show."


def test_values_read_as_a_person_writes_them() -> None:
    text = shown({"temperature_c": 18.4, "is_raining": False, "wind": {"speed_kmh": 12, "from": "west"}})
    assert text == "temperature c: 18.4\nis raining: no\n\nwind:\nspeed kmh: 12\nfrom: west"


def test_long_lists_are_cut_and_say_so() -> None:
    text = shown({"items": [{"title": f"t{number}"} for number in range(80)]})
    assert "50. t49" in text
    assert text.endswith("… and 30 more")


def test_several_results_carry_the_agents_names() -> None:
    text = present([("Dice", "Rolled 4"), ("Clock", '{"error": "no zone"}')])
    assert text == "Dice: Rolled 4\n\nClock failed: no zone"


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False)
    | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=20,
)


@given(st.one_of(json_values.map(lambda value: orjson.dumps(value).decode()), st.text(max_size=60)))
def test_any_result_gives_some_text(content: str) -> None:
    assert present([("Thing", content)]).strip()


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
