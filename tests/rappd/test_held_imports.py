"""Quarantined modules on a running daemon: approved agents and services cannot bring them in, until they are approved."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

from agents.storage.atomic_write import write_atomically
from twins.eggs.writers.pack import pack
from twins.trust.quarantine import QuarantineList
from twins.workspace.twin import mint
from twins.workspace.workspace import TwinLayout

WHY = "It came in an egg of kitchen."
OVEN = (
    "import os\nfolder = os.path.basename(os.path.dirname(__file__))\n"
    'open(f".brainstem_data/RAN-{folder}", "w").close()\nHEAT = 200\n'
)
LATE = agent_source("Baker", 'from oven import HEAT; return f"at {HEAT}"')
EARLY = "from utils.stove import HEAT\n" + agent_source("Cook", 'return f"at {HEAT}"')
SERVICE = 'name = "grill"\n\n\ndef handle(method, path, body):\n    from oven import HEAT\n\n    return {"heat": HEAT}, 200\n'


def hold(daemon: RunningDaemon, workspace: Path, name: str) -> Path:
    """As the importer leaves it: the file in place, and its hash held."""
    path = workspace / name
    path.parent.mkdir(parents=True, exist_ok=True)
    held = QuarantineList(daemon.home / "held.json", daemon.home)
    held.hold(path, hashlib.sha256(OVEN.encode()).hexdigest(), WHY, "kitchen.egg")
    path.write_text(OVEN)
    return path


def run(daemon: RunningDaemon, agent: str, start: str = "") -> dict[str, Any]:
    answer = daemon.post(f"{start}/agents/run", {"agent": agent}, control=True)
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found


def approve(daemon: RunningDaemon, filename: str, start: str = "") -> None:
    answer = daemon.post(f"{start}/agents/approve", {"filename": filename}, control=True)
    assert answer.status == 200, answer.body


@pytest.mark.parametrize("whose", ["the brainstem's", "a twin's"])
def test_agent_fails_until_its_module_is_approved(
    make_daemon: Callable[..., RunningDaemon], whose: str
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    twin = mint(TwinLayout(daemon.home), "baker", owner="desk") if whose == "a twin's" else None
    workspace = twin.workspace.root if twin else daemon.home / "brainstem"
    start = f"/twins/{twin.key}" if twin else ""
    (workspace / "agents").mkdir(parents=True, exist_ok=True)
    (workspace / "agents" / "baker_agent.py").write_text(LATE)
    (workspace / "agents" / "cook_agent.py").write_text(EARLY)
    hold(daemon, workspace, "agents/oven.py")
    hold(daemon, workspace, "utils/stove.py")
    daemon.start()

    told = run(daemon, "Baker", start)
    assert (told["ok"], WHY in told["result"]) == (False, True)
    assert "agents/oven.py is quarantined until you approve it" in told["result"]
    [card] = [
        card
        for file in daemon.get(f"{start}/agents", control=True).json()["files"]
        for card in file["cards"]
        if card["file"] == "cook_agent.py"
    ]
    assert (card["quarantined"], card["line"]) == (True, 1)
    assert card["reason"] == f"utils/stove.py is quarantined until you approve it: {WHY}"
    assert not list(workspace.rglob("RAN-*"))

    approve(daemon, "oven.py", start)
    assert run(daemon, "Baker", start)["result"] == "at 200"
    assert not list(workspace.rglob("RAN-utils")), "the other still waits"
    approve(daemon, "utils/stove.py", start)
    assert run(daemon, "Cook", start)["result"] == "at 200", "it is loaded now, without being saved anew"


def test_service_fails_until_its_module_is_approved(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    workspace = daemon.home / "brainstem"
    oven = hold(daemon, workspace, "agents/oven.py")
    (workspace / "services").mkdir()
    (workspace / "services" / "grill_service.py").write_text(SERVICE)
    daemon.start()
    answer = daemon.get("/api/grill")
    assert (answer.status, WHY in answer.json()["error"]) == (500, True)
    assert not list(oven.parent.parent.rglob("RAN-*"))
    approve(daemon, "oven.py")
    assert daemon.get("/api/grill").json() == {"heat": 200}


def test_quarantined_module_stops_running_at_once(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    daemon.drop("oven.py", "HEAT = 90\n")
    daemon.drop("baker_agent.py", LATE)
    daemon.start()
    assert run(daemon, "Baker")["result"] == "at 90"
    oven = hold(daemon, daemon.home / "brainstem", "agents/oven.py")
    assert WHY in run(daemon, "Baker")["result"]
    assert not list(oven.parent.parent.rglob("RAN-*"))
    daemon.drop("oven.py", OVEN.replace("200", "180"))
    assert WHY in run(daemon, "Baker")["result"], "one that was changed on disk waits, too"
    daemon.post("/agents/approve", {"filename": "oven.py"}, control=True)
    assert run(daemon, "Baker")["result"] == "at 180"


def test_unsigned_eggs_modules_wait_and_organs_serve(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    """A twin that packs its own egg elsewhere: here nobody trusts it, so nothing of it runs unread."""
    elsewhere = make_daemon("elsewhere")
    twin = mint(TwinLayout(elsewhere.home), "baker", owner="far")
    (twin.workspace.agents / "baker_agent.py").write_text(LATE)
    (twin.workspace.agents / "oven.py").write_text(OVEN)
    twin.workspace.organs.mkdir()
    (twin.workspace.organs / "heart_organ.py").write_text(SERVICE.replace('name = "grill"', ""))
    egg = elsewhere.home / "baker.egg"
    pack(twin.workspace, egg)
    daemon = make_daemon(LLM_FAKE="1").start()
    assert daemon.post("/eggs/hatch", {"path": str(egg)}, control=True).status == 200
    start, workspace = f"/twins/{twin.key}", daemon.home / "twins" / twin.key
    assert (workspace / "services" / "heart_organ.py").is_file()

    approve(daemon, "baker_agent.py", start)
    told = run(daemon, "Baker", start)
    assert (told["ok"], "agents/oven.py is quarantined until you approve it" in told["result"]) == (
        False,
        True,
    )
    at_its_door = RunningDaemon(daemon.home)
    at_its_door.port = daemon.post(f"{start}/boot", control=True).json()["port"]
    refused = at_its_door.get("/api/heart")
    assert (refused.status, "heart_organ.py is quarantined" in refused.json()["error"]) == (403, True)
    assert not list(workspace.rglob("RAN-*"))

    approve(daemon, "oven.py", start)
    assert run(daemon, "Baker", start)["result"] == "at 200"
    approve(daemon, "services/heart_organ.py", start)
    assert at_its_door.get("/api/heart").json() == {"heat": 200}


def test_workspace_organs_are_services_that_win(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    workspace = daemon.home / "brainstem"
    says = "def handle(method, path, body):\n    return {{'from': {!r}}}, 200\n"
    write_atomically(workspace / "organs" / "heart_organ.py", says.format("organs").encode())
    assert daemon.get("/api/heart").json() == {"from": "organs"}
    write_atomically(workspace / "services" / "heart_organ.py", says.format("services").encode())
    assert daemon.get("/api/heart").json() == {"from": "services"}


def test_damaged_list_stops_the_workspaces_code_only(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    workspace = daemon.home / "brainstem"
    daemon.drop("cook_agent.py", agent_source("Cook", 'return "cooked"'))
    (workspace / "services").mkdir()
    (workspace / "services" / "grill_service.py").write_text(SERVICE)
    (daemon.home / "held.json").write_text("{")
    daemon.start()
    assert "Cook" not in daemon.agent_names()
    assert "HackerNews" in daemon.agent_names()
    [row] = [row for row in daemon.get("/health").json()["quarantined"] if row["file"] == "cook_agent.py"]
    assert row["reason"] == "held.json is damaged; no code from eggs runs until it is whole."
    assert daemon.get("/api/grill").status == 403
    assert daemon.chat("hello")["response"]

    (daemon.home / "held.json").unlink()
    time.sleep(0.06)  # turns that follow each other do not each look
    daemon.chat("hello")
    assert "Cook" in daemon.agent_names(), "as of the next turn"
    assert run(daemon, "Cook")["result"] == "cooked"
    (daemon.home / "held.json").write_text("[]")
    time.sleep(0.06)
    daemon.chat("hello")
    assert "Cook" not in daemon.agent_names()
