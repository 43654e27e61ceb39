"""Request bodies: what a model cannot take is left out or said otherwise, and what is left out is the oldest."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.providers.abilities import Abilities
from agents.providers.chat_request import encoded, request_body
from agents.providers.constant_text import TEXT
from agents.providers.context_window import fit, size
from agents.providers.provider import ModelRequest
from agents.providers.refusals import Meaning

TOOL = {"type": "function", "function": {"name": "Note", "description": "", "parameters": {}}}


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def said(text: str, *calls: str) -> dict[str, Any]:
    made = [
        {"id": f"c{at}", "type": "function", "function": {"name": "Note", "arguments": one}}
        for at, one in enumerate(calls)
    ]
    return {"role": "assistant", "content": text, **({"tool_calls": made} if made else {})}


def result(text: str, id: str = "c0") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "name": "Note", "content": text}


def body(
    messages: list[dict[str, Any]],
    *,
    stream: bool = False,
    tools: bool = True,
    can_tools: bool = True,
    **abilities: bool,
) -> dict[str, Any]:
    async def prompt() -> str:
        return ""

    request = ModelRequest(
        messages, [TOOL] if tools else [], prompt, on_text=(lambda _: None) if stream else None
    )
    return request_body(request, messages, "soul", "m", Abilities(tools=can_tools, **abilities))


def told(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in found["messages"]]


def test_model_without_tools_gets_calls_and_results_as_words() -> None:
    found = body(
        [user("q"), said("", "{}"), result("18"), said("It is 18."), user("and now?")], can_tools=False
    )
    assert told(found)[1:] == [
        ("user", "q"),
        ("user", "[Note answered: 18]"),
        ("assistant", "It is 18."),
        ("user", "and now?"),
    ]
    assert not {"tools", "tool_choice"} & set(found)
    assert not any(message.get("tool_calls") for message in found["messages"])


@pytest.mark.parametrize(
    ("messages", "wanted"),
    [
        ([user("a"), user("b")], [("user", f"{TEXT}\n\nsoul\n\na\n\nb")]),
        (
            [user("a"), said("x"), said("y"), user("b")],
            [("user", f"{TEXT}\n\nsoul\n\na"), ("assistant", "x\n\ny"), ("user", "b")],
        ),
        ([said("x"), user("b")], [("user", f"{TEXT}\n\nsoul\n\nb")]),
    ],
)
def test_roles_alternate_and_the_system_text_is_said_first(messages: list[Any], wanted: list[Any]) -> None:
    assert told(body(messages, tools=False, repeated_roles=False, system=False)) == wanted


def test_pictures_stay_when_messages_are_joined() -> None:
    picture = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}
    (found,) = body([user("a"), picture], tools=False, repeated_roles=False, system=False)["messages"]
    assert [part["type"] for part in found["content"]] == ["text", "image_url"]


def test_stream_is_always_said() -> None:
    assert body([user("a")])["stream"] is False
    assert body([user("a")], stream=True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in body([user("a")], stream=True, stream_usage=False)
    assert body([user("a")], stream=True, tool_stream=False)["stream"] is False
    assert body([user("a")], stream=True, tools=False, tool_stream=False)["stream"] is True


@pytest.mark.parametrize("arguments", ["", "not json", "[1]", '{"a": 1', '"x"'])
def test_arguments_of_earlier_calls_always_parse(arguments: str) -> None:
    (made,) = body([user("a"), said("", arguments), result("x")])["messages"][2]["tool_calls"]
    assert orjson.loads(made["function"]["arguments"]) == {}


def test_half_characters_of_a_client_are_replaced() -> None:
    assert orjson.loads(encoded(body([user("a\ud83d")])))["messages"][1]["content"] == "a\ufffd"


@given(
    st.lists(st.tuples(st.text(max_size=9), st.integers(0, 3)), max_size=6),
    st.integers(0, 3),
    st.integers(0, 2000),
)
def test_fit_leaves_out_the_oldest_and_never_parts_a_call_from_its_results(
    turns: list[tuple[str, int]], rounds: int, most: int
) -> None:
    messages: list[dict[str, Any]] = []
    for text, calls in turns:
        messages.append(user(text))
        for number in range(calls):
            messages += [said("", "{}", "{}"), result(f"r{number}"), result("s", "c1")]
        messages.append(said("answer"))
    messages.append(user("the question"))
    for number in range(rounds):
        messages += [said("", "{}"), result(f"now {number}")]
    fitted = fit(messages, most)
    kept = fitted.messages
    assert len(kept) + fitted.left_out == len(messages)
    assert user("the question") in kept
    if rounds:
        assert kept[-2:] == messages[-2:]
    for at, message in enumerate(kept):
        if message["role"] == "tool":
            assert kept[at - 1]["role"] in ("tool", "assistant")
        if message.get("tool_calls"):
            assert [one["role"] for one in kept[at + 1 : at + 1 + len(message["tool_calls"])]] == [
                "tool"
            ] * len(message["tool_calls"])
    if size(messages) <= most:
        assert kept == messages
    if fitted.left_out and kept[0] != user("the question"):
        assert size(kept) <= most + 2


def test_fit_keeps_the_newest_turns_and_the_newest_calls() -> None:
    turns = [[user(f"question {number}"), said(f"answer {number}")] for number in range(4)]
    calls = [[said("", "{}"), result(f"result {number}")] for number in range(4)]
    asked, past = user("the question"), [message for turn in turns for message in turn]
    newest = [*turns[2], *turns[3], asked]
    assert fit([*past, asked], size(newest) + 9).messages == newest
    newest = [asked, *calls[2], *calls[3]]
    present = [message for call in calls for message in call]
    assert fit([*past, asked, *present], size(newest) + 9).messages == newest


def test_each_ability_is_given_up_once_and_only_where_it_was_used() -> None:
    plain = body([user("a")], tools=False)
    full = body([user("a")], stream=True)
    whole = Abilities()
    assert whole.without(Meaning.NO_TOOLS, full) == Abilities(tools=False)
    assert whole.without(Meaning.NO_TOOLS, plain) is None
    assert whole.without(Meaning.NO_STREAM_USAGE, full) == Abilities(stream_usage=False)
    assert whole.without(Meaning.NO_TOOL_STREAM, full) == whole.without(Meaning.BROKE_OFF, full)
    assert whole.without(Meaning.BROKE_OFF, plain) is None
    assert whole.without(Meaning.NO_SYSTEM, plain) == Abilities(system=False)
    alternating = whole.without(Meaning.ALTERNATE, plain)
    assert alternating == Abilities(repeated_roles=False)
    assert alternating.without(Meaning.ALTERNATE, plain) == Abilities(repeated_roles=False, system=False)
    assert whole.without(Meaning.KEY, full) is None
