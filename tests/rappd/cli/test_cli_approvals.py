"""Files that wait for the owner's approval, on every screen: expected, amber, and told apart from what is broken."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import Terminal, on_terminal

from tests.rappd.cli.gardener import KETTLE, PUMP, Gardener, with_code

WAITING = "kettle_agent.py waits for your approval. "
GROUPS = ("create", "replace", "keep", "quarantine", "refuse")


@pytest.fixture
def waiting(idle: RunningDaemon, kitchen: Gardener) -> RunningDaemon:
    """A home with an agent in the brainstem and a twin's agent and service that wait, and a broken agent."""
    twin = with_code(kitchen)
    (kitchen.home.agents).mkdir(parents=True, exist_ok=True)
    kitchen.home.drop("kettle_agent.py", KETTLE)
    single = twin.with_name("kettle.egg")
    packed = kitchen.home.cli(
        "egg", "pack", "--form", "agent", "--item", "kettle_agent.py", "-o", str(single)
    )
    assert packed.returncode == 0, packed
    for egg in (twin, single):
        assert idle.cli("egg", "hatch", str(egg)).returncode == 0
    idle.drop("broken_agent.py", "class A(:\n")
    return idle


def test_agents_list_marks_waiting_amber_and_broken_red(waiting: RunningDaemon) -> None:
    for up in (False, True):
        if up:
            waiting.start()
        seen = on_terminal(waiting, "agents", "list")
        (row,) = [line for line in seen.lines if line.startswith("!  kettle_agent.py")]
        assert "waits for your approval" in row
        told = "\n".join(seen.lines)
        assert f"! {WAITING}" in told
        assert "→ read it, then: rappd agents approve kettle_agent.py" in told
        assert [line for line in seen.lines if line.startswith("✗ broken_agent.py line 1: ")]
        assert not [line for line in seen.lines if line.startswith("✗") and "kettle" in line]


def test_status_and_start_count_what_waits_apart(waiting: RunningDaemon) -> None:
    started = waiting.cli("start", "--detach")
    try:
        note = "! 3 files wait for your approval: rappd agents approve"
        assert "! 3 files wait for your approval: " in started.stdout
        assert "! 1 agent file has a fault: " in started.stdout
        seen = on_terminal(waiting, "status")
        assert note in seen.lines
        assert [line for line in seen.lines if line.endswith(" ready, 1 file with faults")]
        assert json.loads(waiting.cli("status", "--json").stdout)["status"]["waiting"] == 3
        assert waiting.cli("agents", "approve", "kettle").returncode == 0
        assert "! 2 files wait for your approval" in waiting.cli("status").stdout
        assert waiting.cli("agents", "approve", "--twin", "gardener", "kettle", "pump").returncode == 0
        assert "for your approval" not in waiting.cli("status").stdout
    finally:
        waiting.cli("stop")


def test_doctor_notes_what_waits_with_its_way(waiting: RunningDaemon, kitchen: Gardener) -> None:
    for up in (False, True):
        if up:
            waiting.start()
        found = json.loads(waiting.cli("doctor", "--json").stdout)["doctor"]
        rows = [row for row in found if row["about"] == "Approvals"]
        assert rows == [
            {
                "about": "Approvals",
                "verdict": "note",
                "what": "brainstem: agents/kettle_agent.py waits for your approval",
                "do": "read what waits, then: rappd agents approve",
            },
            {
                "about": "Approvals",
                "verdict": "note",
                "what": "gardener: agents/kettle_agent.py, services/pump_service.py wait for your approval",
                "do": f"read what waits, then: rappd agents approve --twin {kitchen.key[:12]}",
            },
        ]
        others = [row["what"] for row in found if row["about"] != "Approvals"]
        assert not [what for what in others if "kettle" in what or "pump" in what]


def test_foreground_daemon_notes_an_agent_that_waits(idle: RunningDaemon, kitchen: Gardener) -> None:
    kitchen.home.drop("kettle_agent.py", KETTLE)
    egg = kitchen.packed("first.egg").with_name("kettle.egg")
    kitchen.home.cli("egg", "pack", "--form", "agent", "--item", "kettle_agent.py", "-o", str(egg))
    terminal = Terminal(idle, "start")
    terminal.read_until(lambda seen: "Ctrl-C stops it" in seen.words)
    assert idle.cli("egg", "hatch", str(egg)).returncode == 0
    seen = terminal.read_until(lambda seen: "rappd agents approve" in seen.words)
    assert f"! {WAITING}" in seen.text
    assert "✗" not in seen.text
    terminal.send(signal.SIGINT)
    assert terminal.to_end().code == 0


def test_plan_counts_each_file_of_the_egg_once(idle: RunningDaemon, kitchen: Gardener) -> None:
    kitchen.give(".brainstem_data/notes.json", "{}")
    first = with_code(kitchen)
    assert idle.cli("egg", "hatch", str(first)).returncode == 0
    (idle.home / "twins" / kitchen.key / "agents" / "kettle_agent.py").write_text("# mine\n")
    kitchen.give("services/other_service.py", PUMP.replace("pump", "other"))
    kitchen.give("soul.md", "# New\n")
    egg = kitchen.packed("second.egg")
    for overwrite in ("", "soul,agents"):
        told = idle.cli("egg", "plan", str(egg), "--json", *(("--overwrite", overwrite) if overwrite else ()))
        plan = json.loads(told.stdout)["plan"]
        paths = [one["path"] for group in GROUPS for one in plan[group]["files"]]
        assert len(paths) == len(set(paths))
        assert sum(plan[group]["count"] for group in GROUPS) == len(paths) == plan["seal"]["listed"]
    replaced = {one["path"]: one.get("why", "") for one in plan["quarantine"]["files"]}
    assert replaced == {"agents/kettle_agent.py": "yours is kept aside", "services/other_service.py": ""}
    assert [one["path"] for one in plan["replace"]["files"]] == ["soul.md"]
    done = json.loads(idle.cli("egg", "hatch", str(egg), "--overwrite", overwrite, "--json").stdout)[
        "hatched"
    ]
    paths = [one["path"] for group in GROUPS for one in done[group]["files"]]
    assert len(paths) == len(set(paths)) == plan["seal"]["listed"]


def test_hatching_counts_waiting_files_among_written(idle: RunningDaemon, kitchen: Gardener) -> None:
    egg: Path = with_code(kitchen)
    shown = idle.cli("egg", "hatch", str(egg)).stdout
    assert shown.startswith(
        "✓ gardener hatched: 5 files.\n! 2 code files wait for your approval: kept, not run."
    )
