"""Codecs of OpenAI's two APIs: any JSON gives a request or a refusal, and events fit together."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from envelopes.codecs import openai_chat, openai_responses
from envelopes.codecs.openai_chat import OpenAIRequest
from envelopes.codecs.openai_responses import CALL, MESSAGE, RESPONSE, ResponseEvents, id_of, turn_of
from envelopes.errors import MalformedError
from envelopes.program_input import call_id, following_turn, has_rounds, turn_of_call

TURN = "0f0e0d0c-0b0a-4908-8706-050403020100"
Decode = Callable[[dict[str, Any]], OpenAIRequest]


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(*ids: str) -> dict[str, Any]:
    made = [{"id": one, "type": "function", "function": {"name": "f", "arguments": "{}"}} for one in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


@pytest.mark.parametrize(
    ("messages", "text", "roles", "system"),
    [
        ([user("a")], "a", [], ""),
        ([user("a"), user("b")], "b", ["user"], ""),
        ([{"role": "system", "content": "s"}, user("a")], "a", [], "s"),
        ([user("a"), {"role": "developer", "content": "d"}], "a", [], "d"),
        ([user("a"), {"role": "assistant", "content": "b"}], "a", [], ""),
        ([{"role": "system", "content": "only this"}], "only this", [], "only this"),
        ([user("a"), {"role": "assistant", "content": "b"}, user("c")], "c", ["user", "assistant"], ""),
        (
            [user("a"), assistant("x"), {"role": "tool", "tool_call_id": "x", "content": "r"}],
            "",
            ["user", "assistant", "tool"],
            "",
        ),
        (
            [user("a"), assistant("x"), {"role": "tool", "tool_call_id": "x", "content": "r"}, user("b")],
            "b",
            ["user", "assistant", "tool"],
            "",
        ),
        (
            [{"role": "user", "content": [{"type": "text", "text": "p"}, {"type": "text", "text": "q"}]}],
            "p\nq",
            [],
            "",
        ),
    ],
)
def test_messages_become_a_sentence_and_what_came_before(
    messages: list[Any], text: str, roles: list[str], system: str
) -> None:
    found = openai_chat.decode({"model": "m", "messages": messages})
    assert (found.text, [one["role"] for one in found.history], found.program.system) == (text, roles, system)
    assert bool(found.results) == (text == "")


@pytest.mark.parametrize(
    ("items", "text", "history"),
    [
        ("hi", "hi", []),
        ([user("hi")], "hi", []),
        ([{"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}], "hi", []),
        (
            [
                user("a"),
                {"type": "reasoning", "id": "rs_1", "summary": []},
                {"type": "function_call", "call_id": "x", "name": "f", "arguments": "{}"},
                {"type": "function_call", "call_id": "y", "name": "g", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "x", "output": "1"},
                {
                    "type": "function_call_output",
                    "call_id": "y",
                    "output": [{"type": "input_text", "text": "2"}],
                },
            ],
            "",
            [("user", "a"), ("assistant", ""), ("tool", "1"), ("tool", "2")],
        ),
    ],
)
def test_items_become_messages_and_calls_beside_each_other_one(
    items: Any, text: str, history: list[tuple[str, str]]
) -> None:
    found = openai_responses.decode({"input": items})
    assert (found.text, [(one["role"], one["content"]) for one in found.history]) == (text, history)


def test_a_tool_that_takes_a_text_is_offered_as_a_function_and_called_with_its_text() -> None:
    custom = {"type": "custom", "name": "patch", "format": {"type": "grammar", "definition": "start: x"}}
    found = openai_responses.decode({"input": "hi", "tools": [custom, {"type": "web_search"}]})
    assert [one["function"]["name"] for one in found.program.tools] == ["patch"]
    assert "start: x" in found.program.tools[0]["function"]["description"]
    call = {"id": "c", "name": "patch", "arguments": json.dumps({"input": "*** text"})}
    item = openai_responses.call_item(TURN, 0, call, found.custom)
    assert (item["type"], item["input"]) == ("custom_tool_call", "*** text")


@pytest.mark.parametrize("rounds", [True, False])
def test_a_calls_id_leads_back_to_its_turn_and_fits_openais_length(rounds: bool) -> None:
    id = call_id(TURN, 99, rounds=rounds)
    assert (turn_of_call(id), has_rounds(id)) == (TURN, rounds)
    assert len(id) <= 40
    assert following_turn(TURN) == following_turn(TURN) != following_turn(TURN, 1)


@pytest.mark.parametrize(
    "id", ["", "call_1", f"call_{'g' * 32}c0", f"call_{'a' * 31}c0", None, 7, f"call_{'a' * 32}c0\n"]
)
def test_other_ids_lead_nowhere(id: Any) -> None:
    assert turn_of_call(id) == ""


@pytest.mark.parametrize("prefix", [RESPONSE, MESSAGE, CALL])
def test_ids_of_items_lead_to_their_turn(prefix: str) -> None:
    assert turn_of(id_of(prefix, TURN, 3)) == (prefix, TURN, 3)
    assert turn_of(f"{prefix}nonsense") == ("", "", 0)


@settings(max_examples=100)
@given(
    st.lists(st.text(max_size=8), max_size=6),
    st.text(max_size=12),
    st.integers(0, 2),
    st.sampled_from(["", "length", "filter"]),
    st.booleans(),
)
def test_events_are_numbered_and_what_they_add_up_to_is_the_response(
    pieces: list[str], last: str, calls: int, ending: str, fails: bool
) -> None:
    made = ResponseEvents(TURN, 1, "brainstem", {})
    told = [*made.begin()]
    for piece in pieces:
        told += made.text(piece)
    given = [{"id": f"c{n}", "name": "f", "arguments": "{}"} for n in range(calls)]
    answer = {"response": last, "tool_calls": given, "ending": ending}
    told += made.fail(MalformedError("no")) if fails else made.end(answer, 2)
    assert [one["sequence_number"] for one in told] == list(range(len(told)))
    whole = told[-1]["response"]
    text = "".join(p["text"] for one in whole["output"] if one["type"] == "message" for p in one["content"])
    assert "".join(one["delta"] for one in told if one["type"] == "response.output_text.delta") == text
    done = [one["item"] for one in told if one["type"] == "response.output_item.done"]
    assert done == whole["output"]
    assert fails or last.strip() in text
    assert (whole["status"] == "failed") == fails
    kept = openai_responses.output_of(TURN, answer)
    assert fails or {one["status"] for one in (*whole["output"], *kept)} == {whole["status"]}


def test_a_model_is_offered_no_tool_beyond_the_allowed_ones() -> None:
    names = ["look", "send", "pay"]
    rows = [{"type": "function", "name": name} for name in names[:2]]
    flat = {"input": "hi", "tools": [{"type": "function", "name": name} for name in names]}
    nested = [{"type": "function", "function": {"name": name}} for name in names]
    for found in (
        openai_responses.decode({**flat, "tool_choice": {"type": "allowed_tools", "tools": rows}}),
        openai_chat.decode(
            {
                "messages": [user("hi")],
                "tools": nested,
                "tool_choice": {
                    "type": "allowed_tools",
                    "allowed_tools": {"mode": "auto", "tools": nested[:2]},
                },
            }
        ),
    ):
        assert [one["function"]["name"] for one in found.program.tools] == names[:2]
        assert found.program.choice == ""
    none = openai_responses.decode({**flat, "tool_choice": {"type": "allowed_tools", "tools": 5}})
    assert none.program.tools == ()


@pytest.mark.parametrize("decode", [openai_chat.decode, openai_responses.decode])
@pytest.mark.parametrize("wrong", ["hot", True, [1], {}])
def test_a_number_that_is_none_is_refused_by_its_name(decode: Decode, wrong: Any) -> None:
    asked = {"messages": [user("hi")], "input": "hi"}
    for field in ("temperature", "top_p", "max_tokens", "max_output_tokens", "frequency_penalty"):
        for fits in (None, 1, 0.5):
            decode({**asked, field: fits})
        with pytest.raises(MalformedError) as refused:
            decode({**asked, field: wrong})
        assert refused.value.key == field


def test_a_response_repeats_the_format_and_the_truncation_that_were_asked_for() -> None:
    form = {"type": "json_schema", "name": "place", "schema": {"type": "object"}}
    asked = {"input": "hi", "text": {"format": form, "verbosity": "low"}, "truncation": "auto"}
    found = openai_responses.response(TURN, 1, "brainstem", openai_responses.decode(asked).echo)
    whole = {**form, "description": None, "strict": False}
    assert (found["text"], found["truncation"]) == ({"format": whole, "verbosity": "low"}, "auto")
    for text in ({}, {"format": None}, {"format": {"type": "json_object"}}):
        shown = openai_responses.decode({"input": "hi", "text": text}).echo["text"]
        assert shown == {"format": text.get("format") or {"type": "text"}}


_KEYS = st.sampled_from(
    [
        *(
            "model",
            "messages",
            "input",
            "role",
            "content",
            "type",
            "tools",
            "tool_choice",
            "function",
            "name",
        ),
        *(
            "tool_calls",
            "tool_call_id",
            "call_id",
            "id",
            "arguments",
            "output",
            "metadata",
            "session_id",
            "n",
        ),
        *(
            "image_url",
            "url",
            "text",
            "format",
            "instructions",
            "reasoning",
            "effort",
            "stream_options",
            "user",
        ),
    ]
)
_VALUES = st.sampled_from(
    [
        *(
            "user",
            "assistant",
            "tool",
            "system",
            "message",
            "function",
            "function_call",
            "function_call_output",
        ),
        *("input_text", "text", "image_url", "custom", "required", "auto", "data:image/png;base64,AAAA"),
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text(max_size=6) | _VALUES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=6),
    max_leaves=20,
)


@pytest.mark.parametrize("decode", [openai_chat.decode, openai_responses.decode])
@settings(max_examples=100, deadline=None)
@given(body=st.dictionaries(_KEYS, _JSON, max_size=6))
@example(body={"messages": [{"role": "user", "content": [None]}], "input": [{"type": 7}]})
@example(body={"messages": [{"role": []}], "input": [{"role": {}}]})
@example(body={"tools": [None, {"function": {"name": []}}], "messages": [user("a")], "input": "a"})
@example(body={"tool_choice": {"function": 3}, "messages": [user("a")], "input": "a"})
def test_any_json_is_a_request_or_a_refusal(decode: Decode, body: dict[str, Any]) -> None:
    try:
        found = decode(body)
    except MalformedError as problem:
        assert str(problem)
        json.dumps(openai_chat.error(problem))
        return
    assert found.text.strip() or found.results
    json.dumps([found.text, found.history, found.program.tools])
