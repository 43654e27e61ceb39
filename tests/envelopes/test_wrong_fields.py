"""Requests of foreign programs in which one field is of a wrong type, or missing: read, or refused in words, never a failure."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from envelopes.codecs import a2a, acp, jsonrpc, mcp, ollama, openai_chat, openai_responses
from envelopes.errors import ReportableError

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
URL = f"data:image/png;base64,{PNG}"
SCHEMA = {"type": "object", "properties": {"place": {"type": "string"}}}
FUNCTION = {"name": "weather", "description": "The weather.", "parameters": SCHEMA, "strict": True}
CALL = {"id": "c", "type": "function", "function": {"name": "weather", "arguments": "{}"}}
WRONG = (
    None, True, False, 0, -1, 1.5, 10**18, "", "x", "\0", "x" * 70_000, [], [None], [1], [[]], [{}], {}, {"a": 1},
    {"type": "x"}, {"id": "x"},
)  # fmt: skip
DROPPED = object()

CHAT = {
    "model": "brainstem",
    "messages": [
        {"role": "system", "content": "Be brief.", "name": "n"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "hi"},
                {"type": "image_url", "image_url": {"url": URL, "detail": "low"}},
            ],
        },
        {"role": "assistant", "content": None, "refusal": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c", "content": "sunny"},
        {"role": "assistant", "content": "", "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "z"},
        {"role": "user", "content": "hi", "name": "x"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}, {"type": "custom", "custom": {"name": "x"}}],
    "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [FUNCTION]}},
    "functions": [FUNCTION],
    "function_call": {"name": "weather"},
    "stream_options": {"include_usage": True},
    "stream": True,
    "temperature": 1,
    "stop": ["x"],
    "max_tokens": 10,
    "logit_bias": {"1": 1},
    "response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}},
    "n": 1,
    "logprobs": False,
    "top_logprobs": 0,
    "modalities": ["text"],
    "audio": None,
    "user": "u",
    "safety_identifier": "s",
    "prompt_cache_key": "k",
    "metadata": {"session_id": "q", "k": "v"},
    "store": False,
    "prediction": {"type": "content", "content": "x"},
}
RESPONSES = {
    "model": "brainstem",
    "input": [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "hi"},
                {"type": "input_image", "image_url": URL, "detail": "auto"},
            ],
        },
        {
            "type": "message",
            "id": "msg_1",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "x", "annotations": []}],
        },
        {"type": "function_call", "id": "fc_1", "call_id": "c", "name": "weather", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "x"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "t"}]},
        {"type": "item_reference", "id": "msg_1"},
        {"type": "custom_tool_call", "call_id": "d", "name": "cc", "input": "x"},
        {"type": "custom_tool_call_output", "call_id": "d", "output": "x"},
        {"role": "user", "content": "hi"},
    ],
    "instructions": "Be brief.",
    "tools": [
        {"type": "function", **FUNCTION},
        {"type": "web_search"},
        {"type": "custom", "name": "cc", "description": "d", "format": {"type": "text"}},
        {"type": "namespace", "name": "ns", "tools": [{"type": "function", **FUNCTION}]},
    ],
    "tool_choice": {"type": "function", "name": "weather"},
    "previous_response_id": "resp_1",
    "max_output_tokens": 10,
    "metadata": {"session_id": "b"},
    "reasoning": {"effort": "low", "summary": "auto"},
    "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}, "verbosity": "low"},
    "include": ["reasoning.encrypted_content"],
    "background": False,
    "conversation": {"id": "x"},
    "stream": False,
    "store": True,
    "top_logprobs": 0,
    "truncation": "auto",
}
OLLAMA = {
    "model": "brainstem",
    "messages": [
        {"role": "user", "content": "hi", "images": [PNG]},
        {
            "role": "assistant",
            "content": "",
            "thinking": "t",
            "tool_calls": [{"id": "c", "function": {"index": 0, "name": "weather", "arguments": {"a": 1}}}],
        },
        {"role": "tool", "tool_name": "weather", "tool_call_id": "c", "content": "sunny"},
        {"role": "user", "content": "hi"},
    ],
    "tools": [{"type": "function", "function": FUNCTION}],
    "format": SCHEMA,
    "options": {"temperature": 1, "num_predict": 3, "stop": ["x"]},
    "think": "low",
    "stream": False,
    "keep_alive": "5m",
}
GENERATE = {
    "model": "brainstem",
    "prompt": "hi",
    "system": "s",
    "images": [PNG],
    "format": "json",
    "options": {"seed": 1},
    "context": [1],
    "think": False,
}
SENT = {
    "message": {
        "messageId": "m",
        "contextId": "c",
        "taskId": "t",
        "role": "ROLE_USER",
        "parts": [
            {"text": "hi", "metadata": {"a": 1}},
            {"data": {"a": [1]}},
            {"raw": PNG, "mediaType": "image/png", "filename": "p.png"},
        ],
        "metadata": {"x": 1},
        "extensions": ["urn:x"],
    },
    "configuration": {"acceptedOutputModes": ["text/plain"], "historyLength": 3, "returnImmediately": False},
    "metadata": {"y": 1},
}
QUERY = {
    "contextId": "c",
    "status": "TASK_STATE_WORKING",
    "pageSize": 3,
    "pageToken": "",
    "historyLength": 1,
    "statusTimestampAfter": "2026-01-01T00:00:00Z",
    "includeArtifacts": True,
}
MCP_CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {
        "name": "ask",
        "arguments": {"message": "hi"},
        "requestState": "x",
        "inputResponses": {"a": {"action": "accept", "content": {}}},
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {"extensions": {mcp.TASKS: {}}},
            "progressToken": "p",
        },
    },
}
MCP_HEADERS = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "ask"}
PROMPT = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "session/prompt",
    "params": {
        "sessionId": "s",
        "prompt": [
            {"type": "text", "text": "hi"},
            {"type": "resource_link", "uri": "file:///x", "name": "x"},
            {"type": "resource", "resource": {"uri": "file:///x", "text": "t"}},
            {"type": "image", "data": PNG, "mimeType": "image/png"},
        ],
    },
}


def _ollama(raw: bytes) -> None:
    found = ollama.decode_chat(orjson.loads(raw))
    found.asked([f"call-{at}" for at in range(len(found.unnamed))])


def _acp(raw: bytes) -> None:
    call = jsonrpc.decode(raw)
    if isinstance(call, jsonrpc.RpcCall):
        acp.read_prompt(call)


READERS: dict[str, tuple[dict[str, Any], Callable[[bytes], object]]] = {
    "chat": (CHAT, lambda raw: openai_chat.decode(orjson.loads(raw))),
    "responses": (RESPONSES, lambda raw: openai_responses.decode(orjson.loads(raw))),
    "ollama": (OLLAMA, _ollama),
    "generate": (GENERATE, lambda raw: ollama.decode_generate(orjson.loads(raw)).asked()),
    "a2a": (SENT, lambda raw: a2a.read_sent(orjson.loads(raw))),
    "a2a-list": (QUERY, lambda raw: a2a.read_query(orjson.loads(raw))),
    "a2a-rpc": ({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {}}, a2a.decode_rpc),
    "mcp": (MCP_CALL, lambda raw: mcp.read(raw, MCP_HEADERS)),
    "acp": (PROMPT, _acp),
}


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value inside of one."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*at, key)
        yield from places(one, (*at, key))


def changed(body: dict[str, Any], at: tuple[Any, ...], wrong: Any) -> bytes:
    """The body with another value in one place, or without it."""
    found = copy.deepcopy(body)
    inner: Any = found
    for key in at[:-1]:
        inner = inner[key]
    if wrong is DROPPED:
        del inner[at[-1]]
    else:
        inner[at[-1]] = wrong
    return orjson.dumps(found)


@pytest.mark.parametrize("name", READERS)
def test_whatever_stands_in_a_field_is_read_or_refused_in_words(name: str) -> None:
    body, read = READERS[name]
    read(orjson.dumps(body))  # positive control
    for at in places(body):
        for wrong in (*WRONG, DROPPED):
            try:
                read(changed(body, at, wrong))
            except ReportableError as refused:
                assert "Error" not in refused.with_advice(), (at, wrong, str(refused))
            except Exception as failure:
                raise AssertionError(f"{at} = {str(wrong)[:40]}") from failure
