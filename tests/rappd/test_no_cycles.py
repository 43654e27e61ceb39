"""Objects of a request go as soon as it is over: what refers to itself stays until the collector of cycles looks.

That costs each request a share of its collection, and the memory that it works in grows cold.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

REQUESTS = 20
OURS = ("rappd.", "agents.", "envelopes.", "aiohttp.web_request")
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}
TOOL: dict[str, Any] = {"name": "Clock", "arguments": {}, "_meta": META}
WAYS: dict[str, tuple[str, dict[str, Any], dict[str, str]]] = {
    "chat": ("/chat", {"user_input": "clock"}, {}),
    "OpenAI": ("/v1/chat/completions", {"messages": [{"role": "user", "content": "clock"}]}, {}),
    "a tool over MCP": (
        "/mcp",
        {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": TOOL},
        {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "Clock"},
    ),
}


@pytest.fixture
def only_counted() -> Iterator[None]:
    """Garbage is kept until the test has counted it."""
    gc.collect()
    gc.disable()
    yield
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


@pytest.mark.parametrize("way", WAYS)
def test_request_leaves_no_cycles(
    make_daemon: Callable[..., RunningDaemon], only_counted: None, way: str
) -> None:
    daemon = make_daemon(LLM_FAKE="1", RAPPD_HTTP_TOOLS="1")
    daemon.drop("clock_agent.py", agent_source("Clock", 'return "noon"', "Tells the time."))
    daemon.start()
    path, body, headers = WAYS[way]

    def ask() -> None:
        answer = daemon.post(path, body, headers=headers)
        assert answer.status == 200, answer.body
        assert "error" not in answer.json()

    for _ in range(3):  # modules are loaded, and what is kept is made
        ask()
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    for _ in range(REQUESTS):
        ask()
    gc.collect()
    left = Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in gc.garbage)
    often = {name: count for name, count in left.items() if name.startswith(OURS) and count >= REQUESTS}
    assert not often
