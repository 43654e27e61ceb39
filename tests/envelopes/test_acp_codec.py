"""The Agent Client Protocol: prompts as sentences, events as updates, ids that carry their folder."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envelopes.codecs import acp
from envelopes.codecs.acp import Updates
from envelopes.codecs.jsonrpc import RpcCall, RpcError


def _prompt(*blocks: Any, **more: Any) -> RpcCall:
    return RpcCall("session/prompt", {"sessionId": "s", "prompt": list(blocks), **more}, 1)


def test_a_prompt_is_a_sentence_with_what_goes_with_it() -> None:
    found = acp.read_prompt(
        _prompt(
            {"type": "text", "text": "Look at"},
            {"type": "text", "text": "this."},
            {"type": "resource_link", "uri": "https://a.example/b", "name": "b"},
            {"type": "resource_link", "uri": "file:///tmp/a.py", "name": "a"},
            {"type": "resource", "resource": {"uri": "file:///tmp/c.py", "text": "x = 1"}},
            {"type": "image", "mimeType": "image/png", "data": "AA=="},
            {"type": "resource", "resource": {"uri": "a://d", "blob": "AQ==", "mimeType": "image/gif"}},
            {"type": "resource", "resource": {"uri": "a://e", "blob": "AQ==", "mimeType": "application/pdf"}},
            {"type": "resource", "resource": {"uri": "a://f", "blob": "AQ=="}},
        )
    )
    assert found.text.split("\n\n") == [
        "Look at\nthis.",
        "https://a.example/b",
        "file:///tmp/c.py\n```\nx = 1\n```",
        "a://e [a file that is not taken: application/pdf]",
        "a://f [a file that is not taken: file]",
    ]
    assert found.files == ["file:///tmp/a.py"]
    assert found.pictures == [{"type": "image/png", "data": "AA=="}, {"type": "image/gif", "data": "AQ=="}]


@pytest.mark.parametrize(
    "blocks",
    [
        None,
        "text",
        [],
        ["text"],
        [{"type": "text"}],
        [{"type": "text", "text": 7}],
        [{"type": "audio", "data": "AA==", "mimeType": "audio/wav"}],
        [{"type": "resource", "resource": {"uri": "a://b"}}],
        [{"type": "resource", "resource": {"uri": "a://b", "blob": 7}}],
        [{"type": "resource", "resource": {"blob": "AA=="}}],
        [{"type": "resource", "resource": "x"}],
        [{"type": "image", "data": "AA=="}],
        [{"type": "resource_link"}],
        [{"type": "text", "text": "x" * (acp.MOST_OF_A_PROMPT + 1)}],
        [{"type": ["text"], "text": "x"}],
    ],
)
def test_what_is_no_prompt_is_refused_with_the_requests_id(blocks: Any) -> None:
    with pytest.raises(RpcError) as refused:
        acp.read_prompt(RpcCall("session/prompt", {"sessionId": "s", "prompt": blocks}, 9))
    assert (refused.value.number, refused.value.id) == (-32602, 9)


@pytest.mark.parametrize("folder", ["/tmp/project", "/home/ä/Größe", "C:\\work"])
def test_a_sessions_id_carries_its_folder(folder: str) -> None:
    session = acp.new_session("11111111-2222-4333-8444-555555555555", folder)
    assert session.isascii()
    assert acp.folder_of(session) == folder


def test_a_very_long_folder_is_left_out() -> None:
    session = acp.new_session("11111111-2222-4333-8444-555555555555", "/" + "x" * 400)
    assert len(session) <= acp.MOST_OF_A_SESSION
    assert acp.folder_of(session) == ""


@pytest.mark.parametrize("session", ["", "abc", "a.!!!", "a.\udcff", "a.gICA"])
def test_other_ids_carry_none(session: str) -> None:
    assert acp.folder_of(session) == ""


@pytest.mark.parametrize("cwd", [None, "", "project", "./x", 7])
def test_a_folder_is_an_absolute_path(cwd: Any) -> None:
    with pytest.raises(RpcError):
        acp.absolute_folder(RpcCall("session/new", {"cwd": cwd}, 1))


@pytest.mark.parametrize(
    ("event", "kind", "has"),
    [
        (
            {"type": "delta", "text": "Hel"},
            "agent_message_chunk",
            {"content": {"type": "text", "text": "Hel"}},
        ),
        (
            {"type": "thought", "text": "hm"},
            "agent_thought_chunk",
            {"content": {"type": "text", "text": "hm"}},
        ),
        ({"type": "notice", "text": "n"}, "agent_thought_chunk", {"content": {"type": "text", "text": "n"}}),
        (
            {"type": "call", "call": "c1", "name": "Clock", "args": {"zone": "UTC"}},
            "tool_call",
            {"toolCallId": "c1", "title": "Clock", "status": "in_progress", "rawInput": {"zone": "UTC"}},
        ),
        (
            {"type": "piece", "call": "c1", "name": "Clock", "text": "12"},
            "tool_call_update",
            {"status": "in_progress"},
        ),
        (
            {"type": "result", "call": "c1", "ok": True, "result": "12"},
            "tool_call_update",
            {"status": "completed"},
        ),
        (
            {"type": "result", "call": "c1", "ok": False, "result": "no"},
            "tool_call_update",
            {"status": "failed"},
        ),
        ({"type": "waiting", "for": "m", "seconds": 5}, None, {}),
    ],
)
def test_an_event_is_an_update(event: dict[str, Any], kind: str | None, has: dict[str, Any]) -> None:
    found = Updates("s").of(event)
    if kind is None:
        assert found is None
        return
    params = json.loads(found or b"")["params"]
    assert params["sessionId"] == "s"
    assert params["update"].items() >= {"sessionUpdate": kind, **has}.items()


def test_phases_are_a_plan_that_is_told_whole_each_time() -> None:
    updates = Updates("s")
    updates.of({"type": "progress", "phase": "pack", "done": 2, "whole": 2})
    found = updates.of({"type": "progress", "phase": "send", "done": 1, "whole": 4})
    entries = json.loads(found or b"")["params"]["update"]["entries"]
    assert [(one["content"], one["status"]) for one in entries] == [
        ("pack: 2 of 2", "completed"),
        ("send: 1 of 4", "in_progress"),
    ]


@pytest.mark.parametrize(
    ("answer", "yes"),
    [
        ({"outcome": {"outcome": "selected", "optionId": "yes"}}, True),
        ({"outcome": {"outcome": "selected", "optionId": "no"}}, False),
        ({"outcome": {"outcome": "cancelled"}}, False),
        ({"outcome": "selected", "optionId": "yes"}, False),
        ({"optionId": "yes"}, False),
        (None, False),
        ("yes", False),
    ],
)
def test_a_yes_is_a_yes_and_nothing_else_is(answer: Any, yes: bool) -> None:
    assert acp.is_yes(answer) is yes


def test_a_prompt_may_have_a_name_to_be_sent_again_under() -> None:
    assert acp.key_of(_prompt(_meta={acp.KEY: "k"})) == "k"
    assert acp.key_of(_prompt(messageId="m")) == "m"
    for other in ({}, {"_meta": 1}, {"_meta": {acp.KEY: 7}}, {"messageId": []}):
        assert acp.key_of(_prompt(**other)) == ""
