"""Ollama's bodies as turns, and answers as its lines."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.codecs import ollama
from envelopes.errors import MalformedError
from envelopes.program_input import call_id

PIXEL = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 16).decode()
AT = "2026-11-30T12:00:00.000000Z"


def said(*messages: tuple[str, str], **more: Any) -> dict[str, Any]:
    return {"model": "brainstem", "messages": [{"role": r, "content": c} for r, c in messages], **more}


def test_the_last_sentence_is_asked_and_the_rest_is_history() -> None:
    found = ollama.decode_chat(
        said(
            ("system", "Be short."),
            ("user", "one"),
            ("assistant", "two"),
            ("system", "Now."),
            ("user", " three "),
        )
    )
    asked = found.asked()
    assert (asked.text, asked.program.system) == ("three", "Be short.\n\nNow.")
    assert asked.history == [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "two"},
    ]


@pytest.mark.parametrize(
    ("body", "stream"), [({}, True), ({"stream": None}, True), ({"stream": False}, False)]
)
def test_answers_stream_unless_they_are_wanted_whole(body: dict[str, Any], stream: bool) -> None:
    assert ollama.decode_chat(said(("user", "hi"), **body)).stream is stream


def test_what_a_loader_wants_is_left_aside_and_what_a_model_takes_is_handed_on() -> None:
    options = {"num_ctx": 8192, "temperature": 0, "num_predict": 64, "stop": ["x"]}
    found = ollama.decode_chat(
        said(("user", "hi"), keep_alive=-1, options=options, format={"type": "object"}, think=False, future=1)
    )
    asked = found.asked()
    schema = {"name": "answer", "schema": {"type": "object"}}
    assert asked.program.parameters == {
        "temperature": 0,
        "stop": ["x"],
        "max_tokens": 64,
        "response_format": {"type": "json_schema", "json_schema": schema},
    }
    assert found.thinks is False


def test_pictures_go_with_their_sentence() -> None:
    body = {"model": "brainstem", "messages": [{"role": "user", "content": "what is it?", "images": [PIXEL]}]}
    asked = ollama.decode_chat(body).asked()
    assert (asked.text, [one["type"] for one in asked.pictures]) == ("what is it?", ["image/png"])
    shown = ollama.decode_generate({"model": "brainstem", "prompt": "and this?", "images": [PIXEL]})
    assert len(shown.asked().pictures) == 1


def call(name: str, id: str = "", **arguments: Any) -> dict[str, Any]:
    return {**({"id": id} if id else {}), "function": {"name": name, "arguments": arguments}}


TOOL = {"type": "function", "function": {"name": "On", "parameters": {"type": "object"}}}
FIRST, SECOND = (call_id("0" * 8 + "-0000-4000-8000-" + "0" * 12, at, rounds=False) for at in (0, 1))


def test_results_without_ids_are_those_of_the_calls_before_them() -> None:
    body = said(("user", "both"), tools=[TOOL])
    body["messages"] += [
        {"role": "assistant", "content": "", "tool_calls": [call("On", lamp=1), call("Off", lamp=2)]},
        {"role": "tool", "tool_name": "Off", "content": "off"},
        {"role": "tool", "content": "on"},
    ]
    found = ollama.decode_chat(body)
    assert found.unnamed == [("On", {"lamp": 1}), ("Off", {"lamp": 2})]
    asked = found.asked([FIRST, SECOND])
    assert [(one.call, one.content) for one in asked.results] == [(SECOND, "off"), (FIRST, "on")]
    assert [one["function"]["name"] for one in asked.program.tools] == ["On"]


def test_ids_that_a_client_repeats_are_kept() -> None:
    body = said(("user", "one"))
    body["messages"] += [
        {"role": "assistant", "tool_calls": [call("On", FIRST)]},
        {"role": "tool", "content": "on", "tool_call_id": FIRST},
    ]
    found = ollama.decode_chat(body)
    assert found.unnamed == []
    assert [one.call for one in found.asked().results] == [FIRST]


def test_calls_that_are_over_are_history() -> None:
    body = said(("user", "one"))
    body["messages"] += [
        {"role": "assistant", "tool_calls": [call("On")]},
        {"role": "tool", "content": "on"},
        {"role": "assistant", "content": "It is on."},
        {"role": "user", "content": "thanks"},
    ]
    found = ollama.decode_chat(body)
    assert found.unnamed == []
    asked = found.asked()
    assert (asked.text, asked.results, len(asked.history)) == ("thanks", [], 4)
    assert asked.history[1]["tool_calls"][0]["id"] == asked.history[2]["tool_call_id"]


@pytest.mark.parametrize("name", ["brainstem", "brainstem:latest", " brainstem "])
def test_a_model_has_its_name_with_and_without_a_tag(name: str) -> None:
    assert ollama.model_of({"model": name}) == "brainstem"
    assert ollama.model_of({"name": name}) == "brainstem"


@pytest.mark.parametrize(
    "body", [{"model": "brainstem"}, {"model": "brainstem", "messages": [], "keep_alive": 0}]
)
def test_loading_a_model_asks_nothing(body: dict[str, Any]) -> None:
    assert ollama.decode_chat(body).messages == []
    assert ollama.decode_generate(body).messages == []


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ({}, "model"),
        ({"model": 7}, "model"),
        ({"model": "m", "messages": {}}, "messages"),
        ({"model": "m", "messages": ["x"]}, "messages[0]"),
        ({"model": "m", "messages": [{"role": "robot", "content": "x"}]}, "messages[0].role"),
        ({"model": "m", "messages": [{"role": "user", "content": []}]}, "messages[0].content"),
        ({"model": "m", "messages": [{"role": "assistant", "content": "x"}]}, "nothing to answer"),
        ({"model": "m", "messages": [{"role": "user", "content": " "}]}, "empty"),
        ({"model": "m", "messages": [{"role": "assistant", "tool_calls": [{}]}]}, "tool_calls"),
        ({"model": "m", "messages": [{"role": "user", "content": "x", "images": "y"}]}, "messages[0].images"),
        (
            {"model": "m", "messages": [{"role": "user", "content": "x", "images": ["y"]}]},
            "messages[0].images[0]",
        ),
        ({"model": "m", "messages": [{"role": "user", "content": "x"}], "tools": "y"}, "tools"),
        ({"model": "m", "messages": [{"role": "user", "content": "x"}], "logprobs": True}, "logprobs"),
    ],
)
def test_what_cannot_be_used_is_named(body: dict[str, Any], names: str) -> None:
    with pytest.raises(MalformedError) as refused:
        ollama.decode_chat(body).asked()
    assert names in str(refused.value)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
_BODIES = st.fixed_dictionaries(
    {},
    optional={
        "model": _JSON,
        "messages": st.lists(
            st.fixed_dictionaries(
                {}, optional={"role": st.sampled_from(["user", "assistant", "tool", "system"]) | _JSON,
                              "content": _JSON, "images": _JSON, "tool_calls": _JSON}
            ),
            max_size=3,
        )
        | _JSON,
        "tools": _JSON,
        "prompt": _JSON,
        "images": _JSON,
        "options": _JSON,
        "format": _JSON,
    },
)  # fmt: skip


@given(_BODIES)
def test_any_body_is_read_or_refused(body: dict[str, Any]) -> None:
    for decode in (ollama.decode_chat, ollama.decode_generate):
        try:
            found = decode(body)
            found.asked([FIRST] * len(found.unnamed))
        except MalformedError as refused:
            assert str(refused)


def test_lines_have_the_shape_of_ollamas() -> None:
    assert ollama.piece("brainstem", AT, "hi", chat=True) == {
        "model": "brainstem",
        "created_at": AT,
        "message": {"role": "assistant", "content": "hi"},
        "done": False,
    }
    assert ollama.piece("brainstem", AT, "hm", chat=False, thought=True) == {
        "model": "brainstem",
        "created_at": AT,
        "response": "",
        "thinking": "hm",
        "done": False,
    }
    usage = {"input_tokens": 7, "output_tokens": 3}
    assert ollama.last("brainstem", AT, chat=False, text="hi", usage=usage, nanoseconds=9) == {
        "model": "brainstem",
        "created_at": AT,
        "response": "hi",
        "done": True,
        "done_reason": "stop",
        "total_duration": 9,
        "load_duration": 0,
        "prompt_eval_duration": 0,
        "eval_duration": 9,
        "prompt_eval_count": 7,
        "eval_count": 3,
    }
    made = [{"id": FIRST, "name": "On", "arguments": '{"lamp": 1}'}]
    whole = ollama.last("brainstem", AT, chat=True, usage={"tool_calls": made})
    assert whole["message"]["tool_calls"] == [call("On", FIRST, lamp=1)]
    assert ollama.line({"done": True}) == b'{"done":true}\n'
