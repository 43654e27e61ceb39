"""Loopback stand-ins for model servers and for GitHub: real HTTP, scripted answers."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web
from multidict import CIMultiDict

from agents.providers.provider import Completion, ModelRequest, ToolCall

Answer = Callable[[web.Request, dict[str, Any]], Awaitable[web.StreamResponse]]


class Scripted:
    """A chat server that gives the scripted answers in order; the last one repeats."""

    def __init__(self) -> None:
        self.url = ""
        self.script: list[Answer] = []
        self.asked: list[dict[str, Any]] = []
        self.headers: list[CIMultiDict[str]] = []
        self.targets: list[str] = []
        self.listed = [{"id": "small"}, {"id": "big"}]
        self.listing_body: object = None
        self.listings = 0
        self.reached = asyncio.Event()
        self.hung_up = asyncio.Event()
        self.release = asyncio.Event()

    @property
    def models(self) -> list[str]:
        return [body["model"] for body in self.asked]

    def will(self, *answers: Answer) -> None:
        self.script = list(answers)

    def says(self, text: str, **extra: Any) -> Answer:
        return self.answers(
            choices=[{"index": 0, "message": {"role": "assistant", "content": text}}], **extra
        )

    def calls(self, *calls: tuple[str, str, str], text: str | None = None) -> Answer:
        message = {
            "role": "assistant",
            "content": text,
            "tool_calls": [
                {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
                for call_id, name, arguments in calls
            ],
        }
        return self.answers(choices=[{"index": 0, "message": message, "finish_reason": "tool_calls"}])

    def answers(self, **body: Any) -> Answer:
        async def answer(request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
            return web.json_response({"id": "x", "object": "chat.completion", **body})

        return answer

    def raw(self, content: bytes, content_type: str = "application/json") -> Answer:
        async def answer(request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
            return web.Response(body=content, content_type=content_type)

        return answer

    def fails(self, status: int, body: str = "", **headers: str) -> Answer:
        async def answer(request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
            sent = {name.replace("_", "-"): value for name, value in headers.items()}
            return web.Response(status=status, text=body, headers=sent or {"retry-after-ms": "1"})

        return answer

    def streams(self, *chunks: dict[str, Any] | str, done: bool = True, cut: bool = False) -> Answer:
        async def answer(request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            await response.prepare(request)
            for chunk in chunks:
                data = chunk if isinstance(chunk, str) else json.dumps(chunk)
                await response.write(f"data: {data}\n\n".encode())
            if cut:
                assert request.transport is not None
                request.transport.close()
                return response
            if done:
                await response.write(b"data: [DONE]\n\n")
            await response.write_eof()
            return response

        return answer

    def breaks_off(self) -> Answer:
        """Announces a JSON answer and hangs up in its middle."""

        async def answer(request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
            response = web.StreamResponse(
                headers={"Content-Type": "application/json", "Content-Length": "99"}
            )
            await response.prepare(request)
            await response.write(b'{"choices": [')
            assert request.transport is not None
            request.transport.close()
            return response

        return answer

    def hangs(self, *chunks: dict[str, Any]) -> Answer:
        """Sends ``chunks`` (if any), then nothing until the caller hangs up or ``release`` is set."""

        async def answer(request: web.Request, asked: dict[str, Any]) -> web.StreamResponse:
            response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
            if chunks:
                await response.prepare(request)
                for chunk in chunks:
                    await response.write(f"data: {json.dumps(chunk)}\n\n".encode())
            self.reached.set()
            try:
                await self.release.wait()
            finally:
                self.hung_up.set()
            return response if chunks else web.json_response({"choices": []})

        return answer

    async def chat(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        self.headers.append(request.headers.copy())
        self.targets.append(request.path_qs)
        answer = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return await answer(request, body)

    async def listing(self, request: web.Request) -> web.StreamResponse:
        self.listings += 1
        self.headers.append(request.headers.copy())
        return web.json_response(self.listing_body or {"object": "list", "data": self.listed})

    def routes(self, app: web.Application) -> None:
        app.router.add_post("/{path:.*}chat/completions", self.chat)
        app.router.add_get("/{path:(?!api/).*}models", self.listing)


class FakeGitHub(Scripted):
    """GitHub's device flow, its Copilot exchange, and the Copilot server behind it."""

    def __init__(self) -> None:
        super().__init__()
        self.codes = 0
        self.polls: list[dict[str, Any]] = []
        self.on_poll: list[dict[str, Any]] = [{"error": "authorization_pending"}]
        self.expires_in = 900
        self.device_status = 200
        self.exchanges: list[str] = []
        self.on_exchange: list[int] = [200]
        self.session_lasts = 1800
        self.session = 0
        self.refuse_sessions: set[str] = set()
        self.now: Callable[[], float] = time.time

    async def device(self, request: web.Request) -> web.StreamResponse:
        if self.device_status != 200:
            return web.json_response({"message": "no"}, status=self.device_status)
        self.codes += 1
        return web.json_response(
            {
                "device_code": f"device-{self.codes}",
                "user_code": f"ABCD-{self.codes:04d}",
                "verification_uri": "https://github.example/login/device",
                "expires_in": self.expires_in,
                "interval": 5,
            }
        )

    async def access(self, request: web.Request) -> web.StreamResponse:
        form = dict(await request.post())
        self.polls.append(form)
        answer = self.on_poll.pop(0) if len(self.on_poll) > 1 else self.on_poll[0]
        return web.json_response(answer)

    async def exchange(self, request: web.Request) -> web.StreamResponse:
        self.exchanges.append(request.headers["Authorization"])
        status = self.on_exchange.pop(0) if len(self.on_exchange) > 1 else self.on_exchange[0]
        if status != 200:
            return web.json_response({"message": f"no, {self.exchanges[-1]}"}, status=status)
        self.session += 1
        return web.json_response(
            {
                "token": f"tid=session{self.session};exp=1",
                "expires_at": int(self.now()) + self.session_lasts,
                "endpoints": {"api": f"{self.url}/copilot"},
            }
        )

    async def chat(self, request: web.Request) -> web.StreamResponse:
        if request.headers["Authorization"].removeprefix("Bearer ") in self.refuse_sessions:
            self.headers.append(request.headers.copy())
            return web.Response(status=401, text="token expired")
        return await super().chat(request)

    def routes(self, app: web.Application) -> None:
        app.router.add_post("/login/device/code", self.device)
        app.router.add_post("/login/oauth/access_token", self.access)
        app.router.add_get("/copilot_internal/v2/token", self.exchange)
        super().routes(app)


async def _serve(scripted: Scripted) -> AsyncIterator[Scripted]:
    app = web.Application()
    scripted.routes(app)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    scripted.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield scripted
    finally:
        scripted.release.set()
        await runner.cleanup()


@pytest.fixture
async def server() -> AsyncIterator[Scripted]:
    async for scripted in _serve(Scripted()):
        yield scripted


@pytest.fixture
async def other_server() -> AsyncIterator[Scripted]:
    async for scripted in _serve(Scripted()):
        yield scripted


@pytest.fixture
async def github() -> AsyncIterator[Scripted]:
    async for scripted in _serve(FakeGitHub()):
        yield scripted


class Ask:
    """Builds requests, and remembers what was asked of them."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.prompts = 0

    def __call__(
        self,
        text: str = "hello",
        *,
        tools: bool = False,
        stream: bool = False,
        model: str = "",
        round: int = 0,
        messages: list[dict[str, Any]] | None = None,
    ) -> ModelRequest:
        async def prompt() -> str:
            self.prompts += 1
            return "You are a soul."

        return ModelRequest(
            [*(messages or []), {"role": "user", "content": text}] if not round else list(messages or []),
            [WEATHER, CLOCK] if tools else [],
            prompt,
            model=model,
            on_text=self.pieces.append if stream else None,
            round=round,
        )


def _tool(name: str) -> dict[str, Any]:
    parameters = {"type": "object", "properties": {"city": {"type": "string"}}}
    return {"type": "function", "function": {"name": name, "description": name, "parameters": parameters}}


WEATHER, CLOCK = _tool("Weather"), _tool("Clock")


@pytest.fixture
def ask() -> Ask:
    return Ask()


class Offline:
    """Stands where keyword matching stands: calls the first tool once, then answers in words."""

    name = "no model"
    model = "offline"

    def __init__(self) -> None:
        self.asked: list[ModelRequest] = []
        self.closed = False

    async def complete(self, request: ModelRequest) -> Completion:
        self.asked.append(request)
        if request.tools and not request.round:
            return Completion(tool_calls=(ToolCall("c1", "Weather", "{}"),), model=self.model)
        return Completion("(no model) I can: Weather, Clock.", model=self.model)

    async def close(self) -> None:
        self.closed = True


@pytest.fixture
def offline() -> Offline:
    return Offline()


class Clock:
    """A clock that moves when told."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def no_ambient_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys of the person who runs the tests stay out of them."""
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "GITHUB_TOKEN", "GH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
