"""tools/call over MCP: an agent here, recorded, beside the same tool behind the ``mcp`` SDK's own server; ``ask`` beside ``/chat``.

The older era is what most programs speak: each call names its session.
"""

from __future__ import annotations

import asyncio
import itertools
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import aiohttp

from benchmarks.daemon import AGENT, BenchDaemon, free_port
from benchmarks.side_by_side import One, compared

PEER = Path(sys.prefix) / "programs" / "mcp" / "bin" / "python"
RATIOS = (
    ("an agent here, 2025-11-25", "the SDK's server, 2025-11-25"),
    ("an agent here, 2026-07-28", "the SDK's server, 2026-07-28"),
    ("ask", "/chat"),
)
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_ACCEPT = {"Accept": "application/json, text/event-stream"}
_HEADERS = {**_ACCEPT, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}


def missing() -> str:
    """Returns what must be installed first."""
    return "" if PEER.exists() else "the mcp SDK (sh tests/client-programs .venv/programs mcp)"


def run() -> list[tuple[str, str]]:
    """Calls a second at 8 abreast, and the medians of their ratios."""
    port = free_port()
    server = str(Path(__file__).with_name("mcp_server.py"))
    theirs = subprocess.Popen([str(PEER), "-P", server, str(port)], stderr=subprocess.DEVNULL)
    try:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            with BenchDaemon(home, LLM_FAKE="1", RAPPD_HTTP_TOOLS="1") as daemon:
                daemon.drop("echo_agent.py", AGENT.format(name="Echo"))
                daemon.start()
                there, here = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{daemon.port}"
                many = {
                    "the SDK's server, 2025-11-25": (lambda: [theirs.pid], _older(there, "Echo")),
                    "an agent here, 2025-11-25": (daemon.family, _older(here, "Echo")),
                    "the SDK's server, 2026-07-28": (lambda: [theirs.pid], _tool(there, "Echo")),
                    "an agent here, 2026-07-28": (daemon.family, _tool(here, "Echo")),
                    "ask": (daemon.family, _tool(here, "ask", "message")),
                    "/chat": (daemon.family, _chat(here)),
                }
                return asyncio.run(compared(many, RATIOS))
    finally:
        theirs.terminate()
        theirs.wait()


def _tool(url: str, name: str, argument: str = "query") -> One:
    params: dict[str, Any] = {"name": name, "arguments": {argument: "hi"}, "_meta": _META}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}

    async def one(http: aiohttp.ClientSession) -> None:
        async with http.post(f"{url}/mcp", json=asked, headers={**_HEADERS, "Mcp-Name": name}) as answer:
            assert b'"isError":false' in await answer.read()

    return one


def _older(url: str, name: str) -> One:
    headers, ids = dict(_ACCEPT), itertools.count(1)
    client = {"name": "bench", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}

    async def greet(http: aiohttp.ClientSession) -> None:
        asked = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
        async with http.post(f"{url}/mcp", json=asked, headers=headers) as answer:
            session = answer.headers["Mcp-Session-Id"]
        headers.update({"Mcp-Session-Id": session, "MCP-Protocol-Version": "2025-11-25"})
        told = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        async with http.post(f"{url}/mcp", json=told, headers=headers) as answer:
            await answer.read()

    async def one(http: aiohttp.ClientSession) -> None:
        if "Mcp-Session-Id" not in headers:
            await greet(http)
        params = {"name": name, "arguments": {"query": "hi"}}
        asked = {"jsonrpc": "2.0", "id": next(ids), "method": "tools/call", "params": params}
        async with http.post(f"{url}/mcp", json=asked, headers=headers) as answer:
            assert b"answered hi" in await answer.read()

    return one


def _chat(url: str) -> One:
    async def one(http: aiohttp.ClientSession) -> None:
        async with http.post(f"{url}/chat", json={"user_input": "hi"}) as answer:
            assert (await answer.json())["response"]

    return one
