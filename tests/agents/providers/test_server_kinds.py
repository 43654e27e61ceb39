"""Programs that serve models, told apart by their own words over real HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from aiohttp import web

from agents.providers import local_servers, server_kinds
from agents.providers.constant_text import TEXT
from agents.providers.json_http import ask
from agents.providers.openai_server import OpenAIServer, ServerAddress, ServerWording
from agents.providers.provider import ModelRequest
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


@pytest.mark.parametrize(
    ("answers", "billions", "tools"),
    [
        ({"/v1/models": {"data": [entry("llamacpp", meta={"n_params": 134_515_008})]},
          "/props": {"default_generation_settings": {}, "chat_template_caps": {"supports_tools": False}}}, 0.1345, False),
        ({"/v1/models": {"data": [entry("library")]}, "/api/version": {"version": "0.9"},
          "/api/show": {"details": {"parameter_size": "494.03M"}, "capabilities": ["completion", "tools"]}}, 0.494, True),
        ({"/v1/models": {"data": [entry("library")]}, "/api/version": {"version": "0.9"},
          "/api/show": {"model_info": {"general.parameter_count": 8_030_261_312}}}, 8.03, None),
        ({"/v1/models": LISTS}, 0, None),
    ],
)  # fmt: skip
async def test_size_and_calls_as_a_server_tells_them(
    serve: Any, answers: dict[str, Any], billions: float, tools: bool | None
) -> None:
    found = await server_kinds.facts(ask, f"{await serve(answers)}/v1", "m")
    assert found.billions == pytest.approx(billions, rel=0.01)
    assert found.tools is tools


async def test_a_server_that_is_still_loading_is_asked_again(unused_tcp_port: int) -> None:
    loading = True

    async def answer(request: web.Request) -> web.Response:
        if loading:
            return web.json_response({"error": {"message": "Loading model", "code": 503}}, status=503)
        if request.path == "/props":
            return web.json_response({"default_generation_settings": {"n_ctx": 2048}})
        return web.json_response({"data": [entry("llamacpp")]})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    server = OpenAIServer(ServerAddress(f"http://127.0.0.1:{unused_tcp_port}/v1", "m"))
    await server.look("m")
    assert server.traits("m").context == 0
    loading = False
    await server.look("m")
    assert server.traits("m").context == 2048
    await server.close()
    await runner.cleanup()


async def test_a_short_context_is_offered_what_fits_the_sentence_and_a_limit(unused_tcp_port: int) -> None:
    asked: list[dict[str, Any]] = []

    async def answer(request: web.Request) -> web.Response:
        if request.path == "/props":
            return web.json_response({"default_generation_settings": {"n_ctx": 2048}})
        if request.path == "/v1/models":
            return web.json_response({"data": [entry("llamacpp", meta={"n_params": 135_000_000})]})
        asked.append(await request.json())
        if len(asked) == 1:  # as llama.cpp says it where several share its context
            message = {"code": 500, "message": "Context size has been exceeded.", "type": "server_error"}
            return web.json_response({"error": message}, status=500)
        return web.json_response({"choices": [{"message": {"content": "Rain."}, "finish_reason": "stop"}]})

    async def prompt() -> str:
        return "You are kind.\n\n" + "\n\n".join("x" * 300 for _ in range(20))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", unused_tcp_port).start()
    names = ["Alpha", "Beta", "Gamma", "Weather", "Zeta"]
    tools = [
        {"type": "function", "function": {"name": name, "description": f"{name}. {'Does much. ' * 50}",
                                          "parameters": {"type": "object", "properties": {}}}}
        for name in names
    ]  # fmt: skip
    server = OpenAIServer(ServerAddress(f"http://127.0.0.1:{unused_tcp_port}/v1", "m"))
    question = [{"role": "user", "content": "will the weather be fine?"}]
    completion = await server.complete(ModelRequest(question, tools, prompt))
    first, second = asked
    assert completion.text == "Rain."
    assert "Weather" in [tool["function"]["name"] for tool in first["tools"]]
    assert len(first["tools"]) < len(tools)
    assert len(second.get("tools", ())) < len(first["tools"])
    assert first["messages"][0]["content"].startswith(f"{TEXT}\n\nYou are kind.")
    assert len(first["messages"][0]["content"]) < 2200
    assert 0 < first["max_tokens"] <= 512
    await server.close()
    await runner.cleanup()
