"""The chat wire read leniently: every cut of a stream gives the same answer, nonsense gives none."""

from __future__ import annotations

import itertools

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers import chat_wire

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4)
    | st.dictionaries(
        st.sampled_from(
            ["choices", "message", "delta", "content", "tool_calls", "function", "name", "arguments", "id",
             "index", "usage", "prompt_tokens", "completion_tokens", "model", "refusal", "text"]
        ),
        inner,
        max_size=5,
    ),
    max_leaves=30,
)  # fmt: skip


@given(JSON)
def test_any_json_is_an_answer_or_no_answer_but_never_a_crash(body):
    try:
        completion = chat_wire.whole(body, "asked")
    except chat_wire.NoChoicesError:
        return
    assert isinstance(completion.text, str)
    assert all(isinstance(call.arguments, str) and call.id and call.name for call in completion.tool_calls)


@given(st.lists(JSON, max_size=5))
def test_any_chunks_are_an_answer_or_no_answer_but_never_a_crash(chunks):
    gathered = chat_wire.StreamedCompletion("asked")
    text = "".join(gathered.chunk(chunk) for chunk in chunks)
    try:
        completion = gathered.completion()
    except chat_wire.NoChoicesError:
        return
    if text:
        assert sorted(completion.text) == sorted(text)


@st.composite
def calls_and_cuts(draw):
    calls = draw(
        st.lists(
            st.dictionaries(st.text(max_size=4), st.text(max_size=9), max_size=3), min_size=1, max_size=3
        )
    )
    return [
        (orjson.dumps(call).decode(), draw(st.lists(st.integers(0, 60), max_size=4)), draw(st.booleans()))
        for call in calls
    ]


@given(calls_and_cuts())
def test_arguments_survive_every_cut(drawn):
    gathered = chat_wire.StreamedCompletion("asked")
    for index, (arguments, cuts, repeats_name) in enumerate(drawn):
        ends = sorted({0, len(arguments), *(min(cut, len(arguments)) for cut in cuts)})
        first = {"index": index, "id": f"c{index}", "function": {"name": "Weather", "arguments": ""}}
        gathered.chunk({"choices": [{"index": 0, "delta": {"tool_calls": [first]}}]})
        for start, end in itertools.pairwise(ends):
            function = {"arguments": arguments[start:end], **({"name": "Weather"} if repeats_name else {})}
            gathered.chunk(
                {"choices": [{"index": 0, "delta": {"tool_calls": [{"index": index, "function": function}]}}]}
            )
    completion = gathered.completion()
    assert [(call.name, call.arguments) for call in completion.tool_calls] == [
        ("Weather", arguments) for arguments, _, _ in drawn
    ]


def test_server_without_ids_and_object_arguments_works():
    call = {"function": {"name": "Clock", "arguments": {"zone": "UTC"}}}
    completion = chat_wire.whole({"choices": [{"message": {"tool_calls": [call, call]}}]}, "asked")
    first, second = completion.tool_calls
    assert first.id != second.id
    assert first.arguments == '{"zone":"UTC"}'
    assert completion.model == "asked"


def test_a_refusal_is_shown_when_there_is_nothing_else():
    body = {"choices": [{"message": {"content": None, "refusal": "I can't help with that."}}]}
    assert chat_wire.whole(body, "asked").text == "I can't help with that."


def test_no_choices_is_no_answer():
    with pytest.raises(chat_wire.NoChoicesError):
        chat_wire.whole({"choices": []}, "asked")
