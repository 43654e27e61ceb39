"""Answers of servers that cannot be installed here, in the shapes that they document or that were reported of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import ModuleType

import pytest
from aiohttp import web

from agents.errors import ModelUnavailableError
from agents.providers import refusals
from agents.providers.answers.reader import AnswerReader
from agents.providers.openai_server import OpenAIServer, ServerAddress
from agents.providers.provider import ModelRequest
from tests.agents.providers.recorded import azure, lm_studio, ollama, openrouter, vllm
from tests.agents.providers.recorded.shape import Shape

SERVERS = [ollama, lm_studio, vllm, openrouter, azure]
EVERY = [
    pytest.param(shape, id=f"{server.__name__.rpartition('.')[2]}: {shape.name}")
    for server in SERVERS
    for shape in server.SHAPES
]


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize("shape", EVERY)
def test_shape_is_read(shape: Shape, size: int) -> None:
    reader = AnswerReader("asked")
    for begin in range(0, len(shape.octets), size):
        reader.feed(shape.octets[begin : begin + size])
    reader.finish()
    answer = reader.answer()
    if shape.status == 200:
        assert (answer.text, answer.thoughts, str(answer.ending)) == (
            shape.text,
            shape.thoughts,
            shape.ending,
        )
        assert tuple((call.name, call.arguments) for call in answer.calls) == shape.calls
        assert len({call.id for call in answer.calls}) == len(shape.calls)
    if shape.meaning:
        refusal = refusals.read(answer.error, shape.status)
        assert refusal.meaning == shape.meaning
        assert shape.said in refusal.server_sentence
        assert refusal.context_tokens == shape.held


@pytest.fixture
async def wire(unused_tcp_port: int) -> AsyncIterator[list[Shape]]:
    """A server on a socket that sends the shapes in turn."""
    shapes: list[Shape] = []

    async def answer(request: web.Request) -> web.Response:
        shape = shapes.pop(0)
        kind = (
            "text/event-stream"
            if shape.octets.startswith((b"data:", b"event:", b":"))
            else "application/json"
        )
        return web.Response(status=shape.status, body=shape.octets, content_type=kind)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    yield shapes
    await runner.cleanup()


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.__name__.rpartition(".")[2])
async def test_first_answer_and_first_refusal_through_a_socket(
    server: ModuleType, wire: list[Shape], unused_tcp_port: int
) -> None:
    async def prompt() -> str:
        return ""

    answered = next(one for one in server.SHAPES if not one.meaning and one.ending == "finished")
    refused = next(one for one in server.SHAPES if one.status != 200)
    provider = OpenAIServer(ServerAddress(f"http://127.0.0.1:{unused_tcp_port}/v1", "m"))
    wire.append(answered)
    shown: list[str] = []
    question = [{"role": "user", "content": "hello"}]
    completion = await provider.complete(ModelRequest(question, [], prompt, on_text=shown.append))
    assert "".join(shown) == completion.text == answered.text
    assert [(call.name, call.arguments) for call in completion.tool_calls] == list(answered.calls)
    wire += [refused] * 4
    with pytest.raises(ModelUnavailableError) as raised:
        await provider.complete(ModelRequest(question, [], prompt))
    assert raised.value.meaning == refused.meaning
    await provider.close()
