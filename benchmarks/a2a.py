"""SendMessage over A2A: one agent of a daemon, durable, beside the same behind a2a-sdk's own server; one plain client asks both."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import tempfile
import uuid
from pathlib import Path
from typing import Any

from benchmarks.daemon import AGENT, BenchDaemon, free_port
from benchmarks.side_by_side import Line, One, Pids, compared

PEER = Path(sys.prefix) / "programs" / "a2a" / "bin" / "python"
RATIOS = (("an agent here", "the SDK's server"), ("a turn here", "the SDK's server"))


def missing() -> str:
    """Returns what must be installed first."""
    return "" if PEER.exists() else "a2a-sdk (sh tests/client-programs .venv/programs a2a)"


def run() -> list[tuple[str, str]]:
    """Calls a second at 8 abreast: of an agent, a turn with the scripted model, and the SDK's echo in memory."""
    port = free_port()
    serve = f"from benchmarks.a2a_peer import _serve; _serve({port})"
    theirs = subprocess.Popen([str(PEER), "-c", serve], cwd=Path(__file__).parents[1])
    try:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            with BenchDaemon(home, LLM_FAKE="1", RAPPD_HTTP_TOOLS="1") as daemon:
                daemon.drop("echo_agent.py", AGENT.format(name="Echo"))
                daemon.start()
                here = (daemon.family, daemon.port)
                many: dict[str, tuple[Pids, int, One]] = {
                    "the SDK's server": (lambda: [theirs.pid], port, _send("/", "")),
                    "an agent here": (*here, _send("/a2a", "Echo")),
                    "a turn here": (*here, _send("/a2a", "")),
                }
                return asyncio.run(compared(many, RATIOS))
    finally:
        theirs.terminate()
        theirs.wait()


def _send(path: str, skill: str) -> One:
    async def one(line: Line) -> None:
        message: dict[str, Any] = {"messageId": str(uuid.uuid4()), "role": "ROLE_USER"}
        message |= {"parts": [{"text": "hi"}], "metadata": {"skillId": skill} if skill else {}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {"message": message}}
        assert b'"result"' in await line.post(path, asked, {"A2A-Version": "1.0"})

    return one
