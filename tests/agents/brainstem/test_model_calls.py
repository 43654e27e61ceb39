"""Calls of models as they are read before anything is performed: repaired, checked, or given back."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from agents.brainstem.text_calls import TextCallHold, call_in_text, speaks_of_a_call
from agents.brainstem.tool_call_checks import CUT_OFF, read_call, resolve
from agents.providers.provider import ToolCall

NAMES = ("Note", "HackerNews", "Weather_DE")


def tool(name: str, parameters: Any = None) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": "", "parameters": parameters}}


def read(arguments: str, parameters: Any = None, name: str = "Note", *, cut: bool = False) -> Any:
    tools = [tool("Note", parameters), tool("HackerNews")]
    return read_call(ToolCall("c1", name, arguments), tools, cut=cut)


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ('{"text": "one"}', {"text": "one"}),
        ("", {}),
        ("null", {}),
        (' {"text": "one"}\n', {"text": "one"}),
        ('{"text": "one\ntwo\t"}', {"text": "one\ntwo\t"}),
        ('```json\n{"text": "one"}\n```', {"text": "one"}),
        ('```\n{"text": "one"}```', {"text": "one"}),
        ('"{\\"text\\": \\"one\\"}"', {"text": "one"}),
        ('{"text": "one"}{"text": "one"}', {"text": "one"}),
        ('{"text": "one"}\n{"text": "one"} {"text": "one"}', {"text": "one"}),
        ('{"text": "a\\ud83d"}', {"text": "a\ufffd"}),
        ('{"text": "\\ud83d\\ude00"}', {"text": "😀"}),
        ('{"text": "a\\u0000b"}', {"text": "a\0b"}),
    ],
)
def test_harmless_faults_of_arguments_are_repaired(arguments: str, wanted: dict[str, Any]) -> None:
    found = read(arguments)
    assert (found.arguments, found.problem) == (wanted, "")
    assert orjson.loads(found.call.arguments) == wanted


@pytest.mark.parametrize(
    "arguments",
    [
        '{"text": "pay 1', '"foo"', "[1]", '[{"text": "one"}]', "3", "not json", '{"text": NaN}',
        '{"text": "one"}{"text": "two"}', '{"a": 1} and then', '"[1]"', '{"a": ' + "[" * 60 + "]" * 60 + "}",
        '{"a": ' + "[" * 5000, '"\\"{}\\""',
    ],
)  # fmt: skip
def test_what_is_not_one_object_goes_back_to_the_model(arguments: str) -> None:
    found = read(arguments)
    assert (
        found.problem == "The arguments of Note are not one JSON object; it was not performed. Call it again."
    )
    assert found.call.arguments == "{}"


def test_call_of_an_answer_that_was_cut_off_is_never_performed() -> None:
    assert read('{"text": "one"}', cut=True).problem == CUT_OFF


@pytest.mark.parametrize(
    ("schema", "given", "wanted"),
    [
        ({"type": "integer"}, "7", 7),
        ({"type": "integer"}, 7.0, 7),
        ({"type": "number"}, "-1.5e3", -1500.0),
        ({"type": "boolean"}, "True", True),
        ({"type": ["integer", "null"]}, "7", 7),
        ({"type": "array"}, '["a"]', ["a"]),
        ({"type": "object"}, '{"a": 1}', {"a": 1}),
        ({"type": "string"}, 53111, "53111"),
        ({"type": "string"}, "7", "7"),
        ({"type": "integer"}, "seven", "seven"),
        ({"type": "integer"}, "9" * 40, "9" * 40),
        ({"type": "boolean"}, "perhaps", "perhaps"),
        ({"type": "array"}, '{"a": 1}', '{"a": 1}'),
        ({"type": 7}, "7", "7"),
        ({}, "7", "7"),
        ("nonsense", "7", "7"),
    ],
)
def test_values_are_turned_where_that_loses_nothing(schema: Any, given: Any, wanted: Any) -> None:
    found = read(orjson.dumps({"x": given}).decode(), {"type": "object", "properties": {"x": schema}})
    assert (found.arguments["x"], type(found.arguments["x"])) == (wanted, type(wanted))
    assert found.problem == ""
    turned = given != wanted or type(given) is not type(wanted)
    assert turned <= bool(found.repairs)  # what was changed is in the log


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"properties": {"city": {}, "day": {}}, "required": ["city", "day"]}, True),
        ({"properties": {"city": {}}, "required": "city"}, False),
        ({"properties": [], "required": ["city"]}, False),
        ({"properties": {}, "required": ["city"]}, False),
        (7, False),
        (None, False),
    ],
)
def test_missing_parameters_go_back_unless_the_schema_is_invalid(parameters: Any, problem: bool) -> None:
    found = read('{"day": 1}', parameters)
    assert bool(found.problem) is problem
    if problem:
        assert found.problem == "Note needs city; it was not performed. Call it again with that."


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("Note", "Note"),
        ("note", "Note"),
        ("functions.Note", "Note"),
        ("functions.note:0", "Note"),
        ("Note<|channel|>commentary", "Note"),
        ("default_api.hacker_news", "HackerNews"),
        ("hackernews()", "HackerNews"),
        ("weather-de", "Weather_DE"),
        ("Notes", "Notes"),
        ("", ""),
    ],
)
def test_names_that_servers_write_otherwise(name: str, wanted: str) -> None:
    assert resolve(name, NAMES) == wanted
    assert resolve("NOTE", ("Note", "note")) == "NOTE"  # two fit: none is chosen


def test_unknown_name_goes_back_with_names_that_are_near() -> None:
    found = read("{}", name="HackerNewz")
    assert (found.unknown, found.problem) == (True, "Agent 'HackerNewz' not found. Did you mean HackerNews?")
    assert read("{}", name="Quux").problem == "Agent 'Quux' not found."


CALL = '{"name": "Note", "arguments": {"text": "one"}}'


@pytest.mark.parametrize(
    "text",
    [
        CALL,
        f"<tool_call>\n{CALL}\n</tool_call>",
        f"[TOOL_CALLS][{CALL}]",
        '[TOOL_CALLS]Note[ARGS]{"text": "one"}',
        f"<|python_tag|>{CALL}<|eom_id|>",
        '<function=Note>{"text": "one"}</function>',
        '{"name": "note", "parameters": {"text": "one"}}',
        '{"type": "function", "function": {"name": "Note", "arguments": "{\\"text\\": \\"one\\"}"}}',
        f'{{"tool_calls": [{CALL}]}}',
        'functions.Note:\n{"text": "one"}',
        'functions.note({"text": "one"})',
    ],
)
def test_answer_that_is_nothing_but_a_call_is_that_call(text: str) -> None:
    call = call_in_text(text, NAMES)
    assert call is not None
    assert (call.name, orjson.loads(call.arguments)) == ("Note", {"text": "one"})
    hold = TextCallHold()
    assert "".join(hold.feed(letter) for letter in text) == ""
    assert hold.release() == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"I will call it: {CALL}", False),
        (f"```json\n{CALL}\n```", True),
        (f"> {CALL}", False),
        (f"<tool_call>{CALL}</tool_call> and <tool_call>{CALL}</tool_call>", True),
        (f"Let me see. <tool_call>{CALL}</tool_call>", True),
        ('{"name": "LearnNew", "arguments": {}}', True),
        ('{"name": "Nobody", "arguments": {}}', False),
        ("functions.Nobody:\n{}", True),
        ('functions.Note:\n{"text": ', False),
        ('{"name": "Ada", "age": 36}', False),
        ('{"name": "Note"}', False),
        ("[1, 2]", False),
        ("Hello.", False),
    ],
)
def test_call_among_words_is_none(text: str, told: bool) -> None:
    offered = (*NAMES, "LearnNew")
    assert call_in_text(text, offered) is None
    assert speaks_of_a_call(text, offered) is told


@pytest.mark.parametrize(
    "text",
    ["Hello.", "<b>bold</b>", '{"answer": 42}', "[link](x)", "<think", "{{x}}", "[1]", "functions.py is"],
)
def test_other_text_is_shown_as_it_comes(text: str) -> None:
    hold = TextCallHold()
    shown = "".join(hold.feed(letter) for letter in f"{text} and more")
    assert shown == f"{text} and more"
