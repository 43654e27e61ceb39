"""MCP's messages in both eras: which revision a request is of, what it must bring, and the shapes of answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from envelopes.codecs import mcp
from envelopes.codecs.jsonrpc import RpcCall, RpcError
from envelopes.codecs.mcp import McpRequest, Task

SERVER = {"name": "rappd", "version": "1"}
META = {
    "io.modelcontextprotocol/protocolVersion": mcp.MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def _call(method: str, params: dict[str, Any] | None = None, **more: Any) -> bytes:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, **more}
    return json.dumps(body if params is None else {**body, "params": params}).encode()


def _modern(method: str, meta: dict[str, Any] | None = None, **params: Any) -> bytes:
    return _call(method, {**params, "_meta": {**META, **(meta or {})}})


def _headers(method: str, name: str = "", version: str = mcp.MODERN) -> dict[str, str]:
    found = {mcp.VERSION_HEADER: version, mcp.METHOD_HEADER: method}
    return {**found, mcp.NAME_HEADER: name} if name else found


def test_a_request_of_the_newer_era_says_everything_itself() -> None:
    meta = {
        "io.modelcontextprotocol/clientInfo": {"name": "editor", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"extensions": {mcp.TASKS: {}}},
        "progressToken": "p",
    }
    found = mcp.read(_modern("tools/list", meta), _headers("tools/list"))
    assert found is not None
    assert found.is_modern
    assert found.takes_tasks
    assert (found.client, found.progress) == ("editor", "p")


@pytest.mark.parametrize(
    ("asked", "answered"),
    [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2024-01-01", "2025-11-25")],
)
def test_the_older_era_begins_with_a_handshake(asked: str, answered: str) -> None:
    params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "desk"}}
    found = mcp.read(_call("initialize", params), {})
    assert found is not None
    assert (found.version, found.client, found.is_modern) == (answered, "desk", False)
    welcome = mcp.welcome(found, {"tools": {}, "extensions": {mcp.TASKS: {}}}, SERVER, "hi")
    assert welcome["protocolVersion"] == answered
    assert "extensions" not in welcome["capabilities"]


@pytest.mark.parametrize("version", mcp.HANDSHAKES)
def test_a_header_alone_chooses_an_older_revision(version: str) -> None:
    found = mcp.read(_call("tools/list"), {mcp.VERSION_HEADER: version})
    assert found is not None
    assert found.version == version


def test_an_answer_of_the_client_is_nothing_to_act_on() -> None:
    assert mcp.read(b'{"jsonrpc":"2.0","id":1,"result":{}}', {}) is None


@pytest.mark.parametrize(
    ("octets", "headers", "number"),
    [
        (_call("server/discover", {}), _headers("server/discover"), -32602),
        (_call("tools/list", {"_meta": []}), {}, -32602),
        (_call("tools/list", {"_meta": {"progressToken": True}}), {}, -32602),
        (_modern("tools/list", {"io.modelcontextprotocol/clientCapabilities": 1}), _headers("tools/list"), -32602),
        (_call("tools/list", {"_meta": {"io.modelcontextprotocol/clientCapabilities": {}}}), _headers("tools/list"), -32602),
        (_modern("tools/list"), {}, -32020),
        (_modern("tools/list"), _headers("tools/list", version="2025-11-25"), -32020),
        (_modern("tools/list"), {mcp.VERSION_HEADER: mcp.MODERN}, -32020),
        (_modern("tools/list"), _headers("TOOLS/LIST"), -32020),
        (_modern("tools/call", name="ask"), _headers("tools/call"), -32020),
        (_modern("tools/call", name="ask"), _headers("tools/call", "other"), -32020),
        (_modern("tasks/get", taskId="1"), _headers("tasks/get", "2"), -32020),
        (_modern("tools/list", {"io.modelcontextprotocol/protocolVersion": "v9"}), _headers("tools/list", version="v9"), -32022),
        (_call("tools/list"), {mcp.VERSION_HEADER: "1999-01-01"}, -32022),
        (_call("initialize", {}), {}, -32602),
    ],
)  # fmt: skip
def test_what_a_request_lacks_is_named_by_the_protocols_number(
    octets: bytes, headers: dict[str, str], number: int
) -> None:
    with pytest.raises(RpcError) as refused:
        mcp.read(octets, headers)
    assert (refused.value.number, refused.value.id) == (number, 1)


def test_an_unknown_revision_is_answered_with_those_that_are_served() -> None:
    with pytest.raises(RpcError) as refused:
        mcp.read(_call("tools/list"), {mcp.VERSION_HEADER: "v999"})
    assert refused.value.data == {"supported": list(mcp.SUPPORTED), "requested": "v999"}


@pytest.mark.parametrize("name", ["ask", "Größe", " spaced ", "=?odd"])
def test_a_bridge_writes_the_headers_that_are_checked(name: str) -> None:
    octets = _modern("tools/call", name=name)
    found = mcp.read(octets, None)
    assert found is not None
    assert mcp.read(octets, mcp.headers_of(found.call)) == found


_REPEATED = {
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "number": {"type": "number", "x-mcp-header": "Number"},
        "other": {"type": "string"},
        "odd": True,
    }
}


@pytest.mark.parametrize(
    ("arguments", "sent", "fits"),
    [
        ({"other": "x"}, {}, True),
        ({"region": "Rome"}, {"Mcp-Param-Region": "Rome"}, True),
        ({"region": "Größe"}, {"Mcp-Param-Region": "=?base64?R3LDtsOfZQ==?="}, True),
        ({"region": "Um9tZQ=="}, {"Mcp-Param-Region": "Um9tZQ=="}, True),
        ({"number": 7}, {"Mcp-Param-Number": "7"}, True),
        ({"number": False}, {"Mcp-Param-Number": "false"}, True),
        ({"region": "Rome"}, {}, False),
        ({"region": "Rome"}, {"Mcp-Param-Region": "Bern"}, False),
        ({"region": "Rome"}, {"Mcp-Param-Region": "=?base64?Um9tZ?="}, False),
        ({}, {"Mcp-Param-Region": "Rome"}, False),
    ],
)
def test_headers_repeat_the_arguments_that_a_tool_wants_repeated(
    arguments: dict[str, Any], sent: dict[str, str], fits: bool
) -> None:
    if fits:
        mcp.check_parameters(sent, _REPEATED, arguments)
        return
    with pytest.raises(RpcError) as refused:
        mcp.check_parameters(sent, _REPEATED, arguments)
    assert refused.value.number == -32020


def test_without_headers_none_are_asked_for() -> None:
    assert mcp.read(_modern("tools/list"), None) is not None


def test_results_have_the_form_of_their_era() -> None:
    call = RpcCall("tools/list", {}, 4)
    modern = json.loads(mcp.result(McpRequest(call, mcp.MODERN), {"tools": []}, SERVER, cached=True))[
        "result"
    ]
    assert modern == {
        "resultType": "complete",
        "tools": [],
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": {"io.modelcontextprotocol/serverInfo": SERVER},
    }
    older = json.loads(mcp.result(McpRequest(call, "2025-11-25"), {"tools": []}, SERVER, cached=True))
    assert older == {"jsonrpc": "2.0", "id": 4, "result": {"tools": []}}


@pytest.mark.parametrize(
    ("text", "structured"),
    [
        ("plain", None),
        ('{"a": 1}', {"a": 1}),
        ("[1]", None),
        ('{"broken": ', None),
        ('{"a":' * 60 + "1" + "}" * 60, None),
        ('{"content": []}', {"content": []}),
        ('{"content": [{"type": "video", "data": "x"}]}', {"content": [{"type": "video", "data": "x"}]}),
        ('{"content": [{"type": ["text"]}]}', {"content": [{"type": ["text"]}]}),
    ],
)
def test_an_agents_text_is_a_result(text: str, structured: object) -> None:
    found = mcp.call_result(text)
    assert found["content"] == [{"type": "text", "text": text}]
    assert found.get("structuredContent") == structured
    assert found["isError"] is False


def test_a_question_whose_method_is_no_text_is_none() -> None:
    assert mcp.questions_in('{"inputRequests": {"a": {"method": []}}}') is None


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "t"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "audio", "data": "AA==", "mimeType": "audio/wav"},
        {"type": "resource", "resource": {"uri": "a://b", "text": "t"}},
        {"type": "resource_link", "uri": "a://b", "name": "b"},
    ],
)
def test_blocks_of_the_protocol_pass_as_they_are(block: dict[str, Any]) -> None:
    assert mcp.call_result(json.dumps({"content": [block]}))["content"] == [block]


def test_a_failure_says_so() -> None:
    assert mcp.call_result("no", is_error=True) == {
        "content": [{"type": "text", "text": "no"}],
        "isError": True,
    }
    assert mcp.call_result('{"content": [{"type": "text", "text": "x"}]}', is_error=True)["isError"] is True


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"type": "call", "name": "Clock"}, "Clock is asked."),
        ({"type": "result", "name": "Clock", "ok": True}, "Clock answered."),
        ({"type": "result", "name": "Clock", "ok": False}, "Clock failed."),
        ({"type": "piece", "text": "half"}, "half"),
        ({"type": "waiting", "for": "m", "seconds": 5}, "Nothing from m for 5 s."),
        ({"type": "progress", "phase": "load", "done": 1, "whole": 2}, "load: 1 of 2"),
        ({"type": "delta", "text": "secret"}, None),
        ({"type": "thought", "text": "secret"}, None),
    ],
)
def test_events_are_progress(event: dict[str, Any], message: str | None) -> None:
    found = mcp.progress("t", 3, event)
    told = json.loads(found)["params"] if found is not None else None
    assert told == (None if message is None else {"progressToken": "t", "progress": 3, "message": message})


def test_a_task_is_flat_and_its_result_only_in_detail() -> None:
    done = Task("id", "completed", 1_800_000_000_000_000, 1_800_000_001_000_000, {"content": []})
    created = done.as_created()
    assert created["resultType"] == "task"
    assert created["createdAt"] == "2027-01-15T08:00:00.000Z"
    assert "result" not in created
    assert done.in_detail()["result"] == {"content": []}
    failed = Task("id", "failed", 0, 0, problem={"code": -32603, "message": "cut off"}).in_detail()
    assert failed["error"]["code"] == -32603
    assert "result" not in failed
