"""Nothing that the daemon does for a visitor blocks its event loop."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
import time
import traceback
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from blockbuster import BlockingError, blockbuster_ctx
from fixtures.operator_page import SIGNATURE, BrowserKey
from fixtures.running_daemon import agent_source

from rappd.daemon import log
from rappd.daemon.app import Daemon
from rappd.daemon.home import Home
from rappd.daemon.request_signatures import body_hash
from rappd.daemon.startup import start, stop
from rappd.listeners.loopback import app as loopback
from rappd.listeners.loopback.signed_requests import COOKIE
from rappd.listeners.open_listeners import upper_parts
from rappd.settings.load import Settings

SERVICE = """
name = "notes"


def handle(method, path, body):
    return {"method": method, "path": path}, 200
"""


@pytest.fixture
def blocked() -> Iterator[list[str]]:
    """The places where the loop was blocked: filled as it happens, even if somebody caught the error."""
    found: list[str] = []
    plain = BlockingError.__init__

    def noted(self: BlockingError, *arguments: Any) -> None:
        stack = [frame for frame in traceback.extract_stack() if "/blockbuster/" not in frame.filename]
        found.append(f"{arguments}\n{''.join(traceback.format_list(stack[-9:-1]))}")
        plain(self, *arguments)

    BlockingError.__init__ = noted
    yield found
    BlockingError.__init__ = plain


@contextmanager
def guarded() -> Iterator[None]:
    """Raises at any blocking call on the loop's thread.

    /proc is the kernel's memory and answers in microseconds: it tells who is at the control socket, and
    what a worker has started.
    pytest's own log file is no part of the daemon.
    """
    root = logging.getLogger()
    foreign = [handler for handler in root.handlers if type(handler).__module__.startswith("_pytest")]
    for handler in foreign:
        root.removeHandler(handler)
    try:
        with blockbuster_ctx() as buster:
            for function in buster.functions.values():
                function.can_block_in(
                    "agents/runtimes/python/pools/started_processes.py", {"_parent", "_listed_children"}
                )
                function.can_block_in(
                    "agents/runtimes/python/sandbox/syscalls.py", {"anonymous_file"}
                )  # no disk is behind it
                function.can_block_in(
                    "agents/runtimes/python/pools/started_processes.py", {"_has_ended"}
                )  # nor behind /proc
                function.can_block_in(
                    "agents/runtimes/python/worker/channel.py", {"take_back"}
                )  # it never waits
            yield
    finally:
        for handler in foreign:
            root.addHandler(handler)


@pytest.fixture
async def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Daemon]:
    """The daemon with its loopback listener, in this process; opened and closed outside of the guard."""
    for name, value in (
        ("LLM_FAKE", "1"),
        ("RAPPD_LOCAL_MODELS", "off"),
        ("RAPP_HOME", str(tmp_path / "home")),
    ):
        monkeypatch.setenv(name, value)
    home = Home.here()
    home.create()
    log.start(home.log)
    settings = Settings.load(home)
    opened = await Daemon.open(home, settings, upper_parts(settings))
    runner = web.AppRunner(
        loopback.build(opened, lambda: opened.table), access_log=None, shutdown_timeout=0.5
    )
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    opened.listen_on(runner.addresses[0][1])
    await web.UnixSite(runner, str(home.socket)).start()
    try:
        await start(opened)
        yield opened
    finally:
        await runner.cleanup()
        await stop(opened)


class Visitor:
    """Talks to the listener as the operator does (by the control socket), or as any program."""

    def __init__(self, daemon: Daemon) -> None:
        self.daemon = daemon
        self.operator = aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(daemon.home.socket)))
        self.anyone = aiohttp.ClientSession()
        self.url = f"http://127.0.0.1:{daemon.port}"

    async def ask(self, method: str, path: str, status: int = 200, **more: Any) -> bytes:
        async with self.operator.request(method, f"http://localhost{path}", **more) as answer:
            content = await answer.read()
            assert answer.status == status, (method, path, content[:400])
            return content

    async def visit(self, method: str, path: str, status: int = 200, **more: Any) -> bytes:
        async with self.anyone.request(method, self.url + path, **more) as answer:
            content = await answer.read()
            assert answer.status == status, (method, path, content[:400])
            return content

    async def until(self, path: str, words: bytes) -> None:
        for _ in range(400):
            if words in await self.visit("GET", path):
                return
            await asyncio.sleep(0.05)
        raise AssertionError(f"{words!r} never came at {path}")

    async def close(self) -> None:
        await self.operator.close()
        await self.anyone.close()


@pytest.fixture
async def visitor(daemon: Daemon) -> AsyncIterator[Visitor]:
    found = Visitor(daemon)
    yield found
    await found.close()


async def _chat(visitor: Visitor) -> None:
    turn = str(uuid.uuid4())
    said = {"user_input": "hello", "session_id": "s"}
    await visitor.visit("POST", "/chat", json=said)
    first = await visitor.visit("POST", "/chat", json={**said, "turn_id": turn})
    again = await visitor.visit("POST", "/chat", json={**said, "turn_id": turn})
    assert again == first
    stream = await visitor.visit("POST", "/chat/stream", json={"user_input": "hello"})
    assert b'"done"' in stream
    await visitor.visit("POST", "/chat/cancel", 404, json={"turn_id": turn})
    await visitor.visit("POST", "/chat", 400, json={"user_input": 3})


async def _agent_files(visitor: Visitor) -> None:
    form = aiohttp.FormData()
    form.add_field("file", agent_source("Aaa").encode(), filename="aaa_agent.py")
    await visitor.ask("POST", "/agents/import", data=form)
    await visitor.visit("GET", "/agents")
    await visitor.ask("GET", "/agents/export/aaa_agent.py")
    await visitor.ask("GET", "/agents/source/Aaa")
    await visitor.ask("POST", "/agents/run", json={"agent": "Aaa", "args": {}})
    await visitor.ask("POST", "/agents/test", json={"agent": "Aaa"})
    await visitor.ask("POST", "/agents/approve", json={"filename": "aaa_agent.py"})
    await visitor.ask("POST", "/agents/new", json={"filename": "b_agent.py", "source": agent_source("Bbb")})
    removed = await visitor.ask("DELETE", "/agents/aaa_agent.py")
    await visitor.ask(
        "POST", "/agents/undo", json={"undo": removed.decode().split('"undo":"')[1].split('"')[0]}
    )
    bad = aiohttp.FormData()
    bad.add_field("file", b"class A(:\n", filename="bad_agent.py")
    await visitor.ask("POST", "/agents/import", 400, data=bad)


async def _files_by_themselves(visitor: Visitor) -> None:
    folder = visitor.daemon.host.workspace.agents
    dropped = folder / "dropped_agent.py"
    await asyncio.to_thread(dropped.write_text, agent_source("Dropped"))
    await visitor.until("/health", b'"Dropped"')
    await asyncio.to_thread(dropped.write_text, "class A(:\n")
    await visitor.until("/health", b"dropped_agent.py")
    await asyncio.to_thread(dropped.unlink)
    await visitor.daemon.refresh_agents()


async def _settings(visitor: Visitor) -> None:
    await visitor.ask("GET", "/settings")
    await visitor.ask("POST", "/settings", json={"name": "voice_mode", "value": "on"})
    await visitor.ask("POST", "/settings", json={"name": "provider.key", "value": "sk-abcdefgh"})
    await visitor.ask("POST", "/settings", 400, json={"name": "port", "value": "x"})
    await visitor.ask("POST", "/settings/reload")
    await visitor.visit("GET", "/voice")
    await visitor.visit("GET", "/twin")
    await visitor.visit("GET", "/models")


async def _voice_file(visitor: Visitor) -> None:
    await visitor.ask("POST", "/voice/config", json={"voice": "calm", "_password": "secret word"})
    await visitor.ask("GET", "/voice/config?password=secret+word")
    await visitor.ask("POST", "/voice/export")


async def _sources(visitor: Visitor, folder: Path) -> None:
    clone = folder / "clone"
    await asyncio.to_thread((clone / "agents").mkdir, parents=True)
    await asyncio.to_thread((clone / "agents" / "ccc_agent.py").write_text, agent_source("Ccc"))
    await visitor.ask("POST", "/repos/connect", json={"url": str(clone)})
    toggled = {"url": str(clone), "agent_id": "ccc_agent", "enable": True}
    await visitor.ask("POST", "/repos/toggle", json=toggled)
    await visitor.visit("GET", "/repos")
    await visitor.ask("POST", "/repos/disconnect", json={"url": str(clone)})


async def _services(visitor: Visitor) -> None:
    file = visitor.daemon.host.workspace.services / "notes_service.py"
    await asyncio.to_thread(file.write_text, SERVICE)
    await visitor.visit("GET", "/api/notes/all")
    await visitor.visit("POST", "/api/notes/all", json={"a": 1})
    await visitor.visit("GET", "/api/nothing", 404)


async def _rapplications(visitor: Visitor) -> None:
    await visitor.visit("GET", "/rapps")
    await visitor.ask("POST", "/rapps/install", json={"id": "kanban"})
    page = f"http://localhost:{visitor.daemon.port}/rapps/kanban/"
    async with visitor.anyone.get(page) as answer:
        assert answer.status == 200
        await answer.read()
    await visitor.ask("POST", "/rapps/uninstall", json={"id": "kanban"})


async def _record(visitor: Visitor) -> None:
    listed = await visitor.ask("GET", "/threads")
    thread = listed.decode().split('"id":"')[1][:36]
    await visitor.ask("GET", f"/threads/{thread}")
    await visitor.ask("GET", f"/threads/{thread}/export")
    await visitor.ask("GET", f"/threads/{thread}/export?format=markdown")
    await visitor.ask("GET", "/activity")
    async with visitor.operator.get("http://localhost/activity/stream") as stream:
        await visitor.visit("POST", "/chat", json={"user_input": "seen"})
        while b"seen" not in await stream.content.readline():
            pass


async def _health(visitor: Visitor) -> None:
    for path in (
        "/health",
        "/version",
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/",
        "/web/main.js",
    ):
        await visitor.visit("GET", path)
    await visitor.visit("GET", "/nowhere", 404)
    await visitor.ask("GET", "/log")
    await visitor.ask("GET", "/operator/status")


async def _session(visitor: Visitor) -> None:
    made = await visitor.ask("POST", "/operator/key")
    key = made.decode().split('"key":"')[1].split('"')[0]
    browser, host = BrowserKey(), f"127.0.0.1:{visitor.daemon.port}"
    async with visitor.anyone.post(f"{visitor.url}/operator/session", json=browser.entry(key)) as opened:
        assert opened.status == 200
        cookie = opened.cookies[COOKIE].OutputString().partition(";")[0]
    await visitor.visit("GET", "/operator/session")
    await visitor.visit("GET", "/settings", 403)
    large = json.dumps({"user_input": "seen", "padding": "x" * (3 << 20)}).encode()
    for method, path, raw in (("GET", "/settings", b""), ("POST", "/chat", large)):
        signature = browser.signature(method, path, host=host, body=body_hash(raw))
        headers = {"Cookie": cookie, SIGNATURE: signature}
        await visitor.visit(method, path, data=raw, headers=headers, skip_auto_headers=["Content-Type"])


async def test_no_request_blocks_the_event_loop(visitor: Visitor, blocked: list[str], tmp_path: Path) -> None:
    for ask in (
        _chat, _agent_files, _files_by_themselves, _settings, _voice_file, functools.partial(_sources, folder=tmp_path),
        _services, _rapplications, _record, _health, _session,
    ):  # fmt: skip
        with guarded():
            await ask(visitor)
        assert not blocked, f"{len(blocked)} in {ask}:\n\n" + "\n\n".join(dict.fromkeys(blocked))


async def test_the_guard_would_notice_what_an_error_page_hides(visitor: Visitor, blocked: list[str]) -> None:
    async def sleepy() -> None:
        time.sleep(0.001)

    visitor.daemon.host.refresh = sleepy  # type: ignore[method-assign]  # stands for any handler
    with guarded():
        await visitor.ask("POST", "/rapps/install", 500, json={"id": "kanban"})
    assert blocked
