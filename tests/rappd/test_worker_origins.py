"""Code of different origin, and of different agents, runs in different processes."""

from __future__ import annotations

import hashlib

import orjson
from fixtures.running_daemon import agent_source
from fixtures.sandboxed_daemon import SandboxedDaemon


def test_egg_and_own_agents_share_no_worker(sandboxed_daemon: SandboxedDaemon) -> None:
    """Each worker tells itself by a mark that one agent leaves in its process."""
    mark = "import sys; sys.marks = getattr(sys, 'marks', []) + ['{}']; return ' '.join(sys.marks)"
    for name in ("Mine", "Too"):
        sandboxed_daemon.drop(f"{name.lower()}_agent.py", agent_source(name, mark.format(name)))
    source = agent_source("Hatched", mark.format("Hatched"))
    sandboxed_daemon.drop("hatched_agent.py", source)
    receipts = sandboxed_daemon.home / "eggs" / "receipts"
    receipts.mkdir(parents=True, exist_ok=True)
    row = {
        "path": "agents/hatched_agent.py",
        "sha256": hashlib.sha256((sandboxed_daemon.agents / "hatched_agent.py").read_bytes()).hexdigest(),
    }
    receipt = {"sha256": "ab" * 32, "workspace": "brainstem", "files": [row]}
    (receipts / "20260101T000000Z-aaaaaa.json").write_bytes(orjson.dumps(receipt))
    daemon = sandboxed_daemon.start()
    told = [
        daemon.post("/agents/run", {"agent": name}, control=True).json()["result"]
        for name in ("Mine", "Hatched", "Too", "Mine")
    ]
    assert told == ["Mine", "Hatched", "Too", "Mine Mine"]
