"""Any bytes and any fields: MCP and ACP are read, or refused in the protocol's own shape. Nothing else is raised."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from envelopes.codecs import acp, jsonrpc, mcp
from envelopes.codecs.acp import Updates
from envelopes.codecs.jsonrpc import RpcCall, RpcError

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
_METHODS = st.sampled_from(
    [
        "tools/call",
        "tools/list",
        "server/discover",
        "tasks/get",
        "initialize",
        "session/new",
        "session/prompt",
        "x",
    ]
)
_META = st.dictionaries(
    st.sampled_from(
        [
            "io.modelcontextprotocol/protocolVersion",
            "io.modelcontextprotocol/clientCapabilities",
            "io.modelcontextprotocol/clientInfo",
            "progressToken",
            acp.KEY,
        ]
    ),
    st.sampled_from([mcp.MODERN, "2025-11-25", "v9", {}]) | _JSON,
    max_size=4,
)
_BLOCKS = st.lists(
    st.dictionaries(
        st.sampled_from(["type", "text", "data", "mimeType", "uri", "resource"]),
        st.sampled_from(["text", "image", "resource", "resource_link", "file:///x"]) | _JSON,
        max_size=4,
    ),
    max_size=3,
)
_PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "_meta": _META | _JSON,
        "name": _JSON,
        "arguments": _JSON,
        "taskId": _JSON,
        "inputResponses": _JSON,
        "sessionId": _JSON,
        "cwd": st.just("/tmp") | _JSON,
        "prompt": _BLOCKS | _JSON,
        "protocolVersion": _JSON,
        "clientCapabilities": _JSON,
        "clientInfo": _JSON,
    },
)
_HEADERS = st.dictionaries(
    st.sampled_from([mcp.VERSION_HEADER, mcp.METHOD_HEADER, mcp.NAME_HEADER]),
    st.sampled_from([mcp.MODERN, "2025-11-25", "tools/call", "=?base64?AA==?=", "=?base64?!?="])
    | st.text(max_size=6),
)


def _refused_in_shape(problem: RpcError) -> None:
    told = json.loads(jsonrpc.refused(problem))
    assert told["error"]["code"] < 0
    assert told["error"]["message"]


@settings(max_examples=100)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode), _HEADERS)
def test_any_bytes_are_read_or_refused(octets: bytes, headers: dict[str, str]) -> None:
    try:
        mcp.read(octets, headers)
    except RpcError as problem:
        _refused_in_shape(problem)


@settings(max_examples=100)
@given(_METHODS, _PARAMS, _HEADERS | st.none(), st.none() | st.integers(0, 9) | st.text(max_size=4))
def test_any_message_is_read_or_refused(
    method: str, params: dict[str, Any], headers: dict[str, str] | None, id: Any
) -> None:
    body = {"jsonrpc": "2.0", "method": method, "params": params, **({} if id is None else {"id": id})}
    try:
        found = mcp.read(json.dumps(body).encode(), headers)
        assert found is not None
        mcp.tool_arguments(found.call)
        mcp.answers_in(found.call)
    except RpcError as problem:
        _refused_in_shape(problem)
    call = RpcCall(method, params, id)
    mcp.headers_of(call)
    acp.key_of(call)
    acp.client_name(call)
    acp.reads_files(call)
    for read in (acp.read_prompt, acp.absolute_folder):
        with suppress(RpcError):
            read(call)


@settings(max_examples=100)
@given(st.text(max_size=40) | _JSON.map(json.dumps) | _PARAMS.map(json.dumps))
def test_any_text_of_an_agent_is_a_result(text: str) -> None:
    found = mcp.call_result(text)
    assert isinstance(found["content"], list)
    assert found["isError"] is False
    mcp.questions_in(text)


@given(st.dictionaries(st.sampled_from(["type", "text", "call", "name", "phase", "ok"]), _JSON, max_size=6))
def test_any_event_tells_something_or_nothing(event: dict[str, Any]) -> None:
    told = [mcp.progress("t", 1, event), Updates("s").of(event)]
    assert all(json.loads(one)["method"] for one in told if one is not None)


@given(st.text(max_size=40), _JSON)
def test_ids_and_answers_of_others_are_read(text: str, answer: Any) -> None:
    acp.folder_of(text)
    assert acp.is_yes(answer) in (True, False)
    mcp.created_at(text)
