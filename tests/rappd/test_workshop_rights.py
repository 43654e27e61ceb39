"""Files that SwarmFactory loads act with no rights of SwarmFactory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.sandboxed_daemon import SandboxedDaemon

from twins.trust.quarantine import QuarantineList

_ATTACK = """
import os
def attack():
    from agents.runtimes.python.worker import channel
    try:
        channel.call("host", {"operation": "agents.write", "filename": "planted_agent.py", "source": PLANTED})
    except (OSError, channel.CallbackRefusedError):
        pass
    with open(NOTE, "a") as note:
        try:
            open(f"/proc/{os.getppid()}/mem", "r+b").close()
            note.write("reached ")
        except OSError as error:
            note.write(type(error).__name__ + " ")
attack()
"""


def _build(daemon: RunningDaemon) -> dict[str, Any]:
    args = {"action": "preview", "swarm": "desk", "name": "desk"}
    ran = daemon.post("/agents/run", {"agent": "SwarmFactory", "args": args}, control=True).json()
    found: dict[str, Any] = json.loads(ran["result"])
    return found


def test_workshop_asks_the_daemon_for_nothing(sandboxed_daemon: SandboxedDaemon) -> None:
    note = sandboxed_daemon.data / "note"
    planted = agent_source("Planted")
    source = _ATTACK.replace("PLANTED", repr(planted)).replace("NOTE", repr(str(note)))
    desk = sandboxed_daemon.agents / "workspace_agents" / "desk"
    desk.mkdir(parents=True)
    (desk / "reader_agent.py").write_text(source + agent_source("Reader"))
    sandboxed_daemon.data.mkdir(parents=True)
    daemon = sandboxed_daemon.start()
    note.unlink()
    built = _build(daemon)
    assert (built["status"], [row["name"] for row in built["agents"]]) == ("success", ["Reader"])
    assert not (daemon.agents / "planted_agent.py").exists()
    assert note.read_text().split() == ["PermissionError"] * 2


def test_workshop_that_is_quarantined_does_not_run(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon()
    note = daemon.data / "note"
    source = f"open({str(note)!r}, 'w').write('ran')\n" + agent_source("Reader")
    reader = daemon.agents / "workspace_agents" / "desk" / "reader_agent.py"
    reader.parent.mkdir(parents=True)
    reader.write_text(source)
    held = QuarantineList(daemon.home / "held.json", daemon.home)
    held.hold(reader, hashlib.sha256(source.encode()).hexdigest(), "it came in desk.egg", "desk.egg")
    daemon.start()
    built = _build(daemon)
    assert built["status"] == "error"
    assert "is quarantined until you approve it" in built["message"]
    assert not note.exists()
    assert (
        daemon.post(
            "/agents/approve", {"filename": "workspace_agents/desk/reader_agent.py"}, control=True
        ).status
        == 200
    )
    assert _build(daemon)["status"] == "success"
