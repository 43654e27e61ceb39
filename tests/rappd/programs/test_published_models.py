"""Answers of each protocol fit the types that its own library publishes, read strictly."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from fixtures.client_programs import run_python
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import Answer, RunningDaemon, agent_source

FUNCTION = {
    "name": "weather",
    "description": "The weather of a place.",
    "parameters": {"type": "object", "properties": {"place": {"type": "string"}}},
}
OPENAI = """
from openai.types import Model
from openai.types.chat import ChatCompletion, ChatCompletionChunk
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter
kinds = {"chat": ChatCompletion, "chunk": ChatCompletionChunk, "response": Response, "event": ResponseStreamEvent, "model": Model}
def check(kind, row): TypeAdapter(kinds[kind]).validate_json(json.dumps(row), strict=True)
"""
OLLAMA = """
from ollama import ChatResponse, GenerateResponse, ListResponse, ShowResponse
kinds = {"chat": ChatResponse, "generate": GenerateResponse, "tags": ListResponse, "show": ShowResponse}
def check(kind, row): kinds[kind].model_validate_json(json.dumps(row), strict=True)
"""
A2A = """
from a2a.types import a2a_pb2 as types
from a2a.utils.proto_utils import validate_proto_required_fields
from google.protobuf.json_format import ParseDict
def check(kind, row):
    found = ParseDict(row, getattr(types, kind)())
    if kind != "ListTasksResponse":  # its nextPageToken must be there, and must be empty on the last page
        validate_proto_required_fields(found)
"""
MCP = """
import mcp.types as types
def check(kind, row): getattr(types, kind).model_validate_json(json.dumps(row))
"""
ACP = """
import acp.schema as types
def check(kind, row): getattr(types, kind).model_validate_json(json.dumps(row))
"""
EACH = """
for kind, row in json.loads(ROWS):
    check(kind, row)
print("whole", len(json.loads(ROWS)))
"""
VERSION = {"A2A-Version": "1.0", "A2A-Extensions": "urn:rappd:a2a:events:1, urn:rappd:a2a:replay:1"}
Rows = list[tuple[str, Any]]


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, model: FakeModel) -> Iterator[RunningDaemon]:
    found = RunningDaemon(
        tmp_path_factory.mktemp("published") / "home",
        OPENAI_BASE_URL=f"{model.url}/v1",
        OPENAI_MODEL="m",
        RAPPD_MODEL_HELP="never",
        RAPPD_HTTP_TOOLS="1",
    )
    found.drop("dice_agent.py", agent_source("Dice", "return '{\"sum\": 7}'", "Rolls dice."))
    found.drop("bad_agent.py", agent_source("Bad", 'raise ValueError("too warm")', "Fails."))
    yield found.start()
    found.stop()


def fit(program: str, check: str, rows: Rows) -> None:
    ran = run_python(program, f"import json\nROWS = {json.dumps(rows)!r}\n{check}{EACH}")
    assert ran.stdout == f"whole {len(rows)}\n", ran.stderr[-3000:]


def events(answer: Answer) -> list[dict[str, Any]]:
    lines = [one[6:] for one in answer.body.decode().splitlines() if one.startswith("data: ")]
    return [json.loads(one) for one in lines if one != "[DONE]"]


def test_openais(daemon: RunningDaemon, model: FakeModel) -> None:
    rows: Rows = []
    for message in (says("Sunny."), calls(("weather", {"place": "Rome"}))):
        chat = {"model": "brainstem", "messages": [{"role": "user", "content": "hi"}]}
        chat |= {"tools": [{"type": "function", "function": FUNCTION}]}
        asked = {"model": "brainstem", "input": "hi", "tools": [{"type": "function", **FUNCTION}]}
        model.will(message, message, message, message)
        rows.append(("chat", daemon.post("/v1/chat/completions", chat).json()))
        usage = {"stream": True, "stream_options": {"include_usage": True}}
        rows += [("chunk", one) for one in events(daemon.post("/v1/chat/completions", chat | usage))]
        response = daemon.post("/v1/responses", asked).json()
        rows += [("response", response), ("response", daemon.get(f"/v1/responses/{response['id']}").json())]
        rows += [("event", one) for one in events(daemon.post("/v1/responses", asked | {"stream": True}))]
    rows += [("model", one) for one in daemon.get("/v1/models").json()["data"]]
    assert len(rows) > 20
    fit("openai", OPENAI, rows)


def test_ollamas(daemon: RunningDaemon, model: FakeModel) -> None:
    rows: Rows = []
    for message in (says("Sunny."), calls(("weather", {"place": "Rome"}))):
        asked = {"model": "brainstem", "messages": [{"role": "user", "content": "hi"}]}
        asked |= {"tools": [{"type": "function", "function": FUNCTION}]}
        model.will(message, message)
        rows.append(("chat", daemon.post("/ollama/api/chat", asked | {"stream": False}).json()))
        rows += [
            ("chat", json.loads(one)) for one in daemon.post("/ollama/api/chat", asked).body.splitlines()
        ]
    prompt = {"model": "brainstem", "prompt": "hi", "stream": False}
    rows += [("generate", daemon.post("/ollama/api/generate", prompt).json())]
    rows += [("tags", daemon.get("/ollama/api/tags").json())]
    rows += [("show", daemon.post("/ollama/api/show", {"model": "brainstem"}).json())]
    fit("ollama", OLLAMA, rows)


def test_a2as(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will()
    rows: Rows = [("AgentCard", daemon.get("/.well-known/agent-card.json").json())]
    for skill in ("", "Dice", "Bad"):
        message = {"messageId": f"of {skill}", "role": "ROLE_USER", "parts": [{"text": "hi"}]}
        sent = {"message": message | ({"metadata": {"skillId": skill}} if skill else {})}
        whole = daemon.post("/a2a/message:send", sent, headers=VERSION).json()
        rows.append(("SendMessageResponse", whole))
        task = whole["task"]
        rows.append(("Task", daemon.get(f"/a2a/tasks/{task['id']}", headers=VERSION).json()))
        listed = f"/a2a/tasks?includeArtifacts=true&contextId={task['contextId']}"
        rows.append(("ListTasksResponse", daemon.get(listed, headers=VERSION).json()))
        message["messageId"] += ", streamed"
        streamed = events(daemon.post("/a2a/message:stream", sent, headers=VERSION))
        rows += [("StreamResponse", one) for one in streamed]
    fit("a2a", A2A, rows)


def test_mcps(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will()
    rows: Rows = []
    client = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    for method, params, kind in (
        ("initialize", client, "InitializeResult"),
        ("tools/list", {}, "ListToolsResult"),
        ("tools/call", {"name": "ask", "arguments": {"message": "hi"}}, "CallToolResult"),
        ("tools/call", {"name": "Dice", "arguments": {}}, "CallToolResult"),
        ("tools/call", {"name": "Bad", "arguments": {}}, "CallToolResult"),
        ("ping", {}, "EmptyResult"),
    ):
        asked = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        answer = daemon.post("/mcp", asked, headers={"Accept": "application/json, text/event-stream"})
        (told,) = events(answer) or [answer.json()]
        rows.append((kind, told["result"]))
    fit("mcp", MCP, rows)


def test_acps(daemon: RunningDaemon, model: FakeModel) -> None:
    model.will(calls(("Dice", {})), says("Seven."))
    rows: Rows = []

    async def talk() -> None:
        async with (
            aiohttp.ClientSession() as http,
            http.ws_connect(f"ws://127.0.0.1:{daemon.port}/acp") as socket,
        ):

            async def ask(method: str, kind: str, **params: Any) -> Any:
                await socket.send_json({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
                while "method" in (told := await socket.receive_json(timeout=100)):
                    rows.append(("SessionNotification", told["params"]))
                rows.append((kind, told["result"]))
                return told["result"]

            await ask("initialize", "InitializeResponse", protocolVersion=1, clientCapabilities={})
            made = await ask("session/new", "NewSessionResponse", cwd="/tmp", mcpServers=[])
            session = made["sessionId"]
            said = [{"type": "text", "text": "roll"}]
            await ask("session/prompt", "PromptResponse", sessionId=session, prompt=said)
            await ask("session/list", "ListSessionsResponse")
            await ask("session/load", "LoadSessionResponse", sessionId=session, cwd="/tmp", mcpServers=[])

    asyncio.run(talk())
    kinds = {one["update"]["sessionUpdate"] for kind, one in rows if kind == "SessionNotification"}
    assert {"agent_message_chunk", "user_message_chunk", "tool_call", "tool_call_update"} <= kinds
    fit("acp", ACP, rows)
