"""Programs that serve models, told apart by their own words over real HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from agents.providers import local_servers, server_kinds
from agents.providers.json_http import ask
from agents.providers.openai_server import OpenAIServer, ServerAddress, ServerWording
from agents.providers.refusals import Meaning


def entry(owner: str = "me", **more: Any) -> dict[str, Any]:
    return {"id": "m", "object": "model", "owned_by": owner, **more}


LISTS = {"data": [entry()]}


@pytest.fixture
async def serve(unused_tcp_port: int):
    """Serves fixed JSON (or text) by path; everything else is 404."""
    runners = []

    async def start(answers: dict[str, Any], **headers: str) -> str:
        async def answer(request: web.Request) -> web.Response:
            found = answers.get(request.path)
            if found is None:
                raise web.HTTPNotFound
            if isinstance(found, str):
                return web.Response(text=found, content_type="text/html", headers=headers)
            return web.json_response(found, headers=headers)

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
        runners.append(runner)
        return f"http://127.0.0.1:{unused_tcp_port}"

    yield start
    for runner in runners:
        await runner.cleanup()


@pytest.mark.parametrize(
    ("answers", "headers", "kind", "context"),
    [
        ({"/v1/models": {"data": [entry("library")]}, "/api/version": {"version": "0.9"}}, {}, "Ollama", 0),
        ({"/v1/models": LISTS, "/api/version": {"version": "0.9"},
          "/api/ps": {"models": [{"name": "m", "context_length": 4096}]}}, {}, "Ollama", 4096),
        ({"/v1/models": LISTS, "/api/version": {"version": "0.9"},
          "/api/show": {"parameters": "stop x\nnum_ctx 8192"}}, {}, "Ollama", 8192),
        ({"/v1/models": {"data": [entry("llamacpp")]}, "/props": {"default_generation_settings": {"n_ctx": 512}}},
         {}, "llama.cpp", 512),
        ({"/v1/models": LISTS}, {"Server": "llama.cpp"}, "llama.cpp", 0),
        ({"/v1/models": LISTS, "/openapi.json": {"info": {"title": "🦙 llama.cpp Python API"}}}, {},
         "llama.cpp for Python", 0),
        ({"/v1/models": {"data": [entry("vllm", max_model_len=2048)]}}, {}, "vLLM", 2048),
        ({"/v1/models": LISTS, "/api/v0/models": {"data": [entry(max_context_length=9, loaded_context_length=4096)]}},
         {}, "LM Studio", 4096),
        ({"/v1/models": LISTS}, {"x-litellm-version": "1.1"}, "LiteLLM", 0),
        ({"/v1/models": LISTS, "/": "<title>LocalAI - web</title>"}, {}, "LocalAI", 0),
        ({"/v1/models": LISTS, "/": "<title>Jan API Server</title>"}, {}, "Jan", 0),
        ({"/v1/models": LISTS, "/props": [1], "/api/ps": {"models": "x"}}, {}, "", 0),
        ({"/v1/models": {"data": [entry(max_model_len=-1)]}, "/api/show": {"parameters": 7}}, {}, "vLLM", 0),
    ],
)  # fmt: skip
async def test_program_is_known_by_what_it_says(
    serve, answers: dict[str, Any], headers: dict[str, str], kind: str, context: int
) -> None:
    url = await serve(answers, **headers)
    found = await server_kinds.facts(ask, f"{url}/v1", "m")
    assert (found.kind, found.context) == (kind, context)
    (listed,) = await local_servers.find([url], 10)
    assert listed.name == (kind or "local model")


async def test_port_of_another_program_names_nobody(serve, monkeypatch) -> None:
    url = await serve({"/v1/models": {"data": [entry("llamacpp")]}})
    port = int(url.rpartition(":")[2])
    monkeypatch.setattr("agents.providers.local_servers._NAMES", {port: "Ollama"})
    model = OpenAIServer(ServerAddress(f"{url}/v1", "m"), ServerWording("Ollama", do="start Ollama"))
    await model.look()
    assert model.name == "llama.cpp"
    await model.close()


def test_remedy_is_that_of_the_program() -> None:
    assert (
        server_kinds.remedy("Ollama", Meaning.NO_MODEL, "qwen9", "other")
        == "`ollama pull qwen9`, or choose another model"
    )
    assert (
        server_kinds.remedy("llama.cpp", Meaning.NO_TOOLS, "m", "other")
        == "start it with `--jinja`, so that it can use agents"
    )
    assert server_kinds.remedy("", Meaning.NO_TOOLS, "m", "other") == "other"
    assert server_kinds.remedy("Ollama", Meaning.KEY, "m", "other") == "other"
