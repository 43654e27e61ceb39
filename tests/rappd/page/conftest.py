"""Fixtures of the page's tests: a fake daemon behind a real port, and Chromium."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from aiohttp import web
from fixtures.chromium import CHROMIUM, FLAGS, PATIENCE_MS
from fixtures.free_ports import free_port
from fixtures.time_report import started
from playwright.async_api import (
    Browser,
    ConsoleMessage,
    Error,
    Page,
    Playwright,
    Request,
    Response,
    async_playwright,
)

import rappd

BLANK = "web/css/base.css"
"""Of the page's own origin, and nothing runs there."""
WEB = Path(rappd.__file__).parent / "web"
ANSWERS = json.loads(Path(__file__).with_name("answers.json").read_text())
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; form-action 'self'; base-uri 'none'; frame-src http://localhost:*; "
    "frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types dompurify"
)


class FakeDaemon:
    """Stands in for the daemon: scripted turns, agents in memory, and a record of what was asked.

    ``scripted`` holds answers (status, body) by "METHOD /path"; the last one is given again and again.
    A body may be a function: it is called when it is asked for.
    """

    def __init__(self) -> None:
        self.script: dict[str, list[Any]] = {}
        self.turns: dict[str, list[Any]] = {}
        self.asked: list[tuple[str, dict[str, str], Any]] = []
        self.released = asyncio.Event()
        self.cut = False
        self.operator = True
        self.voice = False
        self.news: list[dict[str, Any]] = []
        self.removed: dict[str, Any] = {}
        self.scripted: dict[str, list[tuple[int, Any]]] = {}
        self.files = [
            file("clock_agent.py", "Clock"),
            file(
                "mail_agent.py",
                "",
                quarantined=True,
                held=True,
                waits=True,
                line=2,
                reason="It came in an egg.",
            ),
            file("old_agent.py", "Clock", shadowed_by="clock_agent.py"),
        ]

    def app(self) -> web.Application:
        app = web.Application(middlewares=[self._record])
        app.on_response_prepare.append(self._policy)
        app.router.add_static("/web", WEB)
        app.router.add_get("/", self._index)
        app.router.add_get("/activity/stream", self._news)
        app.router.add_post("/chat/stream", self._stream)
        app.router.add_post("/twins/{twin}/chat/stream", self._stream)
        app.router.add_post("/agents/import", self._import)
        app.router.add_delete("/agents/{file}", self._remove)
        app.router.add_route("*", "/{path:.*}", self._rest)
        return app

    def requests(self, path: str) -> list[tuple[dict[str, str], Any]]:
        return [(headers, body) for asked, headers, body in self.asked if asked == path]

    @web.middleware
    async def _record(self, request: web.Request, handler: Any) -> web.StreamResponse:
        body = await request.json() if request.content_type == "application/json" else None
        self.asked.append((request.path, dict(request.headers), body))
        return await handler(request)

    async def _policy(self, request: web.Request, response: web.StreamResponse) -> None:
        response.headers["Content-Security-Policy"] = POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
        if request.path.startswith("/web/"):
            response.headers["Cache-Control"] = "max-age=3600"

    async def _index(self, _: web.Request) -> web.FileResponse:
        return web.FileResponse(WEB / "index.html")

    async def _rest(self, request: web.Request) -> web.Response:
        if answers := self.scripted.get(f"{request.method} {request.path}"):
            status, body = answers.pop(0) if len(answers) > 1 else answers[0]
            return web.json_response(body() if callable(body) else body, status=status)
        if request.path == "/health":
            provider = {"name": "Ollama", "model": "qwen3", "where": "here", "state": "ok"}
            health = {"name": "desk", "node": "desk_4f2a", "agents": ["Clock"], "provider": provider}
            return web.json_response(health | {"voice_mode": self.voice})
        if request.path == "/operator/session" and request.method == "POST":
            self.operator = True
            return web.json_response({"operator": True})
        if request.path == "/agents/undo":
            self.files.append(self.removed)
        if request.path == "/agents/approve":
            self.files[1] = file("mail_agent.py", "Mail")
        live = {"/agents": {"files": self.files}, "/operator/session": {"operator": self.operator}}
        live["/voice"] = {"voice_mode": self.voice}
        return web.json_response(live.get(request.path) or ANSWERS.get(request.path) or {"status": "ok"})

    async def _news(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event in self.news:
            await response.write(f"data: {json.dumps(event)}\n\n".encode())
        await asyncio.Event().wait()
        return response

    async def _stream(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        new = self.script.get(asked["user_input"], Site.answer("fine"))
        events = self.turns.setdefault(asked["turn_id"], new)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for number, event in enumerate(events, 1):
            if event == Site.HOLD:
                await self.released.wait()
                if self.cut and request.transport is not None:
                    self.cut = False
                    request.transport.abort()
                    break
            elif number > int(request.headers.get("Last-Event-ID") or 0):
                await response.write(f"id: {number}\ndata: {json.dumps(event)}\n\n".encode())
        return response

    async def _import(self, request: web.Request) -> web.Response:
        name = (await request.post())["file"].filename
        if name.startswith("bad"):
            why = {"error": f"{name} didn't load.", "do": "fix and save", "code": "syntax", "line": 12}
            return web.json_response(why | {"reason": "expected ':'"}, status=400)
        self.files.append(file(name, "Weather"))
        return web.json_response({"status": "ok", "agents": ["Weather"], "try": "will it rain?"})

    async def _remove(self, request: web.Request) -> web.Response:
        self.removed = next(one for one in self.files if one["filename"] == request.match_info["file"])
        self.files.remove(self.removed)
        return web.json_response({"status": "ok", "undo": "token"})


def file(filename: str, name: str, **more: Any) -> dict[str, Any]:
    place = {"type": "object", "properties": {"place": {"type": "string", "description": "Where."}}}
    card = {"name": name, "description": f"{name} does one thing. And more.", "parameters": place}
    card |= {"origin": "yours", "try": f"{name.lower()} now?", "quarantined": False} | more
    return {"filename": filename, "agents": [] if more else [name], "cards": [card]}


class Tab:
    """A tab for a module's tests: what it has fetched and compiled, it keeps; of its visits it forgets all.

    It is lent to one page at a time, at one origin, and given up when anything went wrong.
    """

    def __init__(self, browser: Browser) -> None:
        self.browser = browser
        self.port = 0
        self._page: Page | None = None
        self._lent = False

    @asynccontextmanager
    async def lent(self, port: int, size: Any) -> AsyncIterator[Page | None]:
        """The tab, or None where another page has it."""
        if self._lent:
            yield None
            return
        if self._page is None or port != self.port:
            await self._give_up()
            self._page, self.port = await (await self.browser.new_context()).new_page(), port
        self._lent = True
        try:
            await self._page.set_viewport_size(size)
            yield self._page
            await self._forget(self._page)
        except BaseException:
            await self._give_up()
            raise
        finally:
            self._lent = False

    async def _forget(self, page: Page) -> None:
        for other in page.context.pages:
            if other is not page:
                await other.close()
        origin = f"http://127.0.0.1:{self.port}"
        try:
            await page.goto(f"{origin}/{BLANK}")
        except Error:  # the stand-in is closed
            await self._give_up()
            return
        await page.evaluate("sessionStorage.clear()")
        protocol = await page.context.new_cdp_session(page)
        await protocol.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "all"})
        await protocol.detach()
        await page.context.clear_cookies()

    async def _give_up(self) -> None:
        if self._page is not None:
            await self._page.context.close()
        self._page = None


class Changes:
    """Requests of a page that change something and have no answer yet: closing the page gives them up."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._open: set[Request] = set()
        page.on("request", self._begun)
        page.on("response", self._answered)
        page.on("requestfailed", self._failed)

    async def end(self) -> None:
        """Waits until there are none."""
        async with asyncio.timeout(100):
            while self._open:
                await asyncio.sleep(0.005)
        self._page.remove_listener("request", self._begun)
        self._page.remove_listener("response", self._answered)
        self._page.remove_listener("requestfailed", self._failed)

    def _begun(self, request: Request) -> None:
        if request.method != "GET":
            self._open.add(request)

    def _answered(self, response: Response) -> None:
        self._open.discard(response.request)

    def _failed(self, request: Request) -> None:
        self._open.discard(request)


class Site:
    """The stand-in behind a port that can be closed and opened again."""

    HOLD = "hold"
    """In a script: wait until ``daemon.released`` is set."""

    def __init__(self, tab: Tab) -> None:
        self.daemon = FakeDaemon()
        self.browser = tab.browser
        self.port = 0
        self._tab = tab

    async def open(self) -> None:
        self._runner = web.AppRunner(self.daemon.app(), handler_cancellation=True, shutdown_timeout=0.1)
        await self._runner.setup()
        try:
            port = self.port or self._tab.port or free_port()
            await web.TCPSite(self._runner, "127.0.0.1", port, reuse_address=True).start()
        except OSError:
            if self.port:
                raise
            await web.TCPSite(self._runner, "127.0.0.1", free_port()).start()  # another program has the tab's
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        await self._runner.cleanup()

    @asynccontextmanager
    async def opened(self, path: str = "", script: str = "", **options: Any) -> AsyncIterator[Page]:
        """A page to which everything is new. Whatever the policy blocks or a script throws fails the test."""
        size = options.pop("viewport", {"width": 1280, "height": 800})
        async with AsyncExitStack() as stack:
            page = None
            if not script and not options:
                page = await stack.enter_async_context(self._tab.lent(self.port, size))
            if page is None:
                context = await self._tab.browser.new_context(viewport=size, **options)
                stack.push_async_callback(context.close)
                await context.add_init_script(script)
                page = await context.new_page()
            page.set_default_timeout(PATIENCE_MS)
            wrong: list[str] = []

            def thrown(error: Error) -> None:
                wrong.append(str(error))

            def said(message: ConsoleMessage) -> None:
                if message.type == "error":
                    wrong.append(message.text)

            page.on("pageerror", thrown)
            page.on("console", said)
            await page.goto(f"http://127.0.0.1:{self.port}/{path}")
            await page.wait_for_selector("#main h1", state="attached")
            changes = Changes(page)  # not before: a page asks for 200 modules, and each would be told
            yield page
            await changes.end()
            await stack.aclose()
            page.remove_listener("pageerror", thrown)
            page.remove_listener("console", said)
            network = re.compile(r"net::ERR_|status of 4\d\d")
            assert [text for text in wrong if not network.search(text)] == []

    @staticmethod
    async def ask(page: Page, text: str) -> None:
        await page.fill("#write", text)
        await page.press("#write", "Enter")

    @staticmethod
    def ending(text: str, **more: Any) -> dict[str, Any]:
        return {"type": "done", "response": text, "thread": "7c1e", "model": "qwen3"} | more

    @staticmethod
    def answer(text: str, *before: Any, **more: Any) -> list[Any]:
        return [*before, {"type": "delta", "text": text}, Site.ending(text, **more)]

    @staticmethod
    def call(*, ok: bool = True) -> list[dict[str, Any]]:
        result = {"type": "result", "call": "c1", "name": "Clock", "ok": ok, "result": "noon", "seconds": 0.8}
        return [{"type": "call", "call": "c1", "name": "Clock", "args": {"place": "Tokyo"}}, result]


class Browsers:
    """The browsers of this process: each goes on for the next module."""

    def __init__(self, playwright: Playwright) -> None:
        self._playwright = playwright
        self._running: dict[str, Browser] = {}

    async def of(self, program: str) -> Browser:
        """The one that is this program."""
        found = self._running.get(program)
        if found is None or not found.is_connected():
            started["browsers"] += 1
            found = await self._playwright.chromium.launch(executable_path=program, args=FLAGS)
            self._running[program] = found
        return found

    async def close(self) -> None:
        for browser in self._running.values():
            await browser.close()


@pytest_asyncio.fixture(loop_scope="session", scope="session")
async def browsers() -> AsyncIterator[Browsers]:
    async with async_playwright() as playwright:
        found = Browsers(playwright)
        yield found
        await found.close()


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def chromium(request: pytest.FixtureRequest, browsers: Browsers) -> AsyncIterator[Browser]:
    """A browser for a module; its ``BROWSER`` names another program than the headless shell."""
    program = getattr(request.module, "BROWSER", CHROMIUM)
    if program is None:
        pytest.skip("needs Chromium")
    browser = await browsers.of(program)
    yield browser
    for context in browser.contexts:
        await context.close()


@pytest_asyncio.fixture(loop_scope="session", scope="module")
async def tab(chromium: Browser) -> Tab:
    return Tab(chromium)


@pytest_asyncio.fixture(loop_scope="session")
async def site(tab: Tab) -> AsyncIterator[Site]:
    """The stand-in, answering."""
    found = Site(tab)
    await found.open()
    yield found
    found.daemon.released.set()
    await found.close()
