"""tools/call over MCP: an agent here, recorded, beside the same tool behind the ``mcp`` SDK's own server; other ways to ask beside ``/chat``.

The older era is what most programs speak: each call names its session.
"""

from __future__ import annotations

import asyncio
import itertools
import re
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.daemon import AGENT, BenchDaemon, free_port
from benchmarks.side_by_side import Line, One, Pids, compared, family

PEER = Path(sys.prefix) / "programs" / "mcp" / "bin" / "python"
RATIOS = (
    ("an agent here, 2025-11-25", "the SDK's server, 2025-11-25"),
    ("an agent here, 2025-11-25", "the SDK's server, 2025-11-25, stateless"),
    ("an agent here, 2026-07-28", "the SDK's server, 2026-07-28"),
    ("the barest recorded call", "the SDK's server, 2026-07-28"),
    ("ask", "/chat"),
    ("/v1/chat/completions", "/chat"),
)
_SESSION = re.compile(rb"\r\nmcp-session-id: *(\S+)", re.IGNORECASE)
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
    server = str(Path(__file__).with_name("mcp_server.py"))
    ports = free_port(), free_port(), free_port()
    theirs = [
        subprocess.Popen([str(PEER), "-P", server, str(port), kind], stderr=subprocess.DEVNULL)
        for port, kind in zip(ports, ("stateful", "stateless"), strict=False)
    ]
    theirs.append(subprocess.Popen([sys.executable, "-m", "benchmarks.bare_call", str(ports[2])]))
    pids = [partial(family, one.pid) for one in theirs]
    stateful, stateless, bare = zip(pids, ports, strict=True)
    try:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            with BenchDaemon(home, LLM_FAKE="1", RAPPD_HTTP_TOOLS="1") as daemon:
                daemon.drop("echo_agent.py", AGENT.format(name="Echo"))
                daemon.start()
                here = (daemon.family, daemon.port)
                many: dict[str, tuple[Pids, int, One]] = {
                    "the SDK's server, 2025-11-25": (*stateful, _older()),
                    "the SDK's server, 2025-11-25, stateless": (*stateless, _older()),
                    "an agent here, 2025-11-25": (*here, _older()),
                    "the SDK's server, 2026-07-28": (*stateful, _tool("Echo")),
                    "an agent here, 2026-07-28": (*here, _tool("Echo")),
                    "the barest recorded call": (*bare, _tool("Echo")),
                    "ask": (*here, _tool("ask", "message")),
                    "/v1/chat/completions": (*here, _completion),
                    "/chat": (*here, _chat),
                }
                return asyncio.run(compared(many, RATIOS))
    finally:
        for process in theirs:
            process.terminate()
            process.wait()


def _tool(name: str, argument: str = "query") -> One:
    params: dict[str, Any] = {"name": name, "arguments": {argument: "hi"}, "_meta": _META}
    asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {**_HEADERS, "Mcp-Name": name}

    async def one(line: Line) -> None:
        assert b'"isError":false' in await line.post("/mcp", asked, headers)

    return one


def _older() -> One:
    headers, ids = dict(_ACCEPT), itertools.count(1)
    client = {"name": "bench", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}

    async def greet(line: Line) -> None:
        asked = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
        found = _SESSION.search(await line.post("/mcp", asked, headers))
        headers["MCP-Protocol-Version"] = "2025-11-25"
        if found is not None:
            headers["Mcp-Session-Id"] = found[1].decode()
        await line.post("/mcp", {"jsonrpc": "2.0", "method": "notifications/initialized"}, headers)

    async def one(line: Line) -> None:
        if "MCP-Protocol-Version" not in headers:
            await greet(line)
        params = {"name": "Echo", "arguments": {"query": "hi"}}
        asked = {"jsonrpc": "2.0", "id": next(ids), "method": "tools/call", "params": params}
        assert b"answered hi" in await line.post("/mcp", asked, headers)

    return one


async def _chat(line: Line) -> None:
    assert b'"response"' in await line.post("/chat", {"user_input": "hi"}, {})


async def _completion(line: Line) -> None:
    asked = {"model": "brainstem", "messages": [{"role": "user", "content": "hi"}]}
    assert b'"choices"' in await line.post("/v1/chat/completions", asked, {})
