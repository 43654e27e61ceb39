"""Stand-ins that a daemon under test can reach over loopback: a model server, and GitHub."""

from __future__ import annotations

import asyncio
import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

from aiohttp import web

Message = dict[str, Any]
Scripted = Message | Callable[[Message], Message]


def says(text: str) -> Message:
    """An assistant message."""
    return {"role": "assistant", "content": text}


def calls(*wanted: tuple[str, Any], text: str | None = None) -> Message:
    """An assistant message that asks for tools; arguments are given as an object, or as raw text."""
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [
            {
                "id": f"call-{number}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": given if isinstance(given, str) else json.dumps(given),
                },
            }
            for number, (name, given) in enumerate(wanted)
        ],
    }


class LoopbackServer(ABC):
    """An HTTP server on a thread of its own, on a free port of 127.0.0.1."""

    def __init__(self) -> None:
        self.port = 0
        self._loop = asyncio.new_event_loop()
        self._runner: web.AppRunner | None = None
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)

    def stop(self) -> None:
        if self._runner is not None:
            asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    def stop_serving(self) -> None:
        """Frees the port; ``stop`` is still needed."""
        runner, self._runner = self._runner, None
        if runner is not None:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), self._loop).result(10)

    @abstractmethod
    def routes(self, app: web.Application) -> None:
        """Adds what the server answers."""

    async def _open(self) -> None:
        app = web.Application(client_max_size=1 << 26)
        self.routes(app)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.5)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]


class FakeModel(LoopbackServer):
    """An OpenAI-compatible server that answers with a script; when it is used up, with "done"."""

    def __init__(self) -> None:
        super().__init__()
        self.script: list[Scripted] = []
        self.asked: list[Message] = []
        self.keys: list[str] = []
        self.listed: list[Message] = [{"id": "small"}, {"id": "big"}]
        self.pieces: list[str] = []  # how the next streamed text is cut; [] sends it whole
        self.hang = False
        self.status = 200
        self.reached = threading.Event()
        self.hung_up = threading.Event()

    def will(self, *messages: Scripted) -> None:
        """What comes next; what was asked so far is forgotten."""
        self.script = list(messages)
        self.asked.clear()

    def tools(self, number: int = -1) -> list[str]:
        """Names of the tools offered with a request, in their order."""
        return [tool["function"]["name"] for tool in self.asked[number].get("tools", [])]

    def system(self, number: int = -1) -> str:
        """The system text of a request."""
        first = self.asked[number]["messages"][0]
        return str(first["content"]) if first["role"] == "system" else ""

    def results(self, number: int = -1) -> dict[str, str]:
        """Tool results that a request carried, by agent."""
        return {m["name"]: m["content"] for m in self.asked[number]["messages"] if m["role"] == "tool"}

    def routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_get("/v1/models", self._models)

    async def _models(self, request: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": self.listed})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.asked.append(body)
        self.keys.append(request.headers.get("Authorization", ""))
        self.reached.set()
        if self.hang:
            try:
                await asyncio.sleep(120)
            except asyncio.CancelledError:
                self.hung_up.set()
                raise
        if self.status != 200:
            headers = {"x-should-retry": "false"}
            return web.json_response({"error": {"message": "broken"}}, status=self.status, headers=headers)
        found = self.script.pop(0) if self.script else says("done")
        message = found(body) if callable(found) else found
        usage = {"prompt_tokens": 7, "completion_tokens": 3}
        if body.get("stream"):
            return await self._stream(request, body["model"], message, usage)
        choice = {"index": 0, "message": message}
        return web.json_response({"id": "x", "model": body["model"], "choices": [choice], "usage": usage})

    async def _stream(
        self, request: web.Request, model: str, message: Message, usage: dict[str, int]
    ) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        deltas: list[Message] = [{"content": piece} for piece in self.pieces or [message["content"] or ""]]
        if message.get("tool_calls"):
            numbered = [{"index": i, **call} for i, call in enumerate(message["tool_calls"])]
            deltas.append({"tool_calls": numbered})
        for delta in deltas:
            chunk = {"id": "x", "model": model, "choices": [{"index": 0, "delta": delta}]}
            await response.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        last = json.dumps({"id": "x", "model": model, "choices": [], "usage": usage})
        await response.write(b"data: " + last.encode() + b"\n\ndata: [DONE]\n\n")
        return response


class FakeGitHub(FakeModel):
    """Sign-in, API, raw files and Copilot's own model server, all on one port.

    ``files`` maps ``owner/repo/path`` to what the raw address serves; ``folders`` maps
    ``owner/repo`` to what the contents API lists for ``agents``.
    """

    def __init__(self) -> None:
        super().__init__()
        self.signed_in = False
        self.codes = 0
        self.token_status = 200
        self.accounts: list[str] = []
        self.files: dict[str, bytes] = {}
        self.folders: dict[str, Any] = {}
        self.fetched: list[str] = []

    @property
    def environment(self) -> dict[str, str]:
        """What points a daemon here."""
        return {
            "RAPPD_GITHUB_URL": self.url,
            "RAPPD_GITHUB_API": f"{self.url}/api",
            "RAPPD_GITHUB_RAW": f"{self.url}/raw",
        }

    def routes(self, app: web.Application) -> None:
        super().routes(app)
        app.router.add_post("/login/device/code", self._code)
        app.router.add_post("/login/oauth/access_token", self._token)
        app.router.add_get("/api/copilot_internal/v2/token", self._session)
        app.router.add_post("/copilot/chat/completions", self._complete)
        app.router.add_get("/copilot/models", self._models)
        app.router.add_get("/raw/{path:.*}", self._raw)
        app.router.add_get("/api/repos/{owner}/{repo}/contents/agents", self._contents)

    async def _code(self, request: web.Request) -> web.Response:
        self.codes += 1
        answer = {
            "device_code": f"device-{self.codes}",
            "user_code": f"ABCD-{self.codes:04}",
            "verification_uri": f"{self.url}/login/device",
            "expires_in": 900,
            "interval": 0,
        }
        return web.json_response(answer)

    async def _token(self, request: web.Request) -> web.Response:
        form = await request.post()
        if not self.signed_in:
            return web.json_response({"error": "authorization_pending"})
        number = str(form["device_code"]).removeprefix("device-")
        return web.json_response({"access_token": f"ghu_person{number}", "refresh_token": "ghr_again"})

    async def _session(self, request: web.Request) -> web.Response:
        self.accounts.append(request.headers["Authorization"])
        if self.token_status != 200:
            return web.json_response({"message": "no"}, status=self.token_status)
        answer = {
            "token": "tid=session",
            "expires_at": 9_999_999_999,
            "endpoints": {"api": f"{self.url}/copilot"},
        }
        return web.json_response(answer)

    async def _raw(self, request: web.Request) -> web.Response:
        self.fetched.append(request.path)
        content = self.files.get(request.match_info["path"])
        return web.Response(body=content) if content is not None else web.Response(status=404)

    async def _contents(self, request: web.Request) -> web.Response:
        self.fetched.append(request.path)
        found = self.folders.get(f"{request.match_info['owner']}/{request.match_info['repo']}")
        return web.json_response(found) if found is not None else web.Response(status=404)
