"""``rappd neighborhood`` at the prompt: snapshot, list, plan and hatch, with a daemon and without one."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures import member_homes as homes
from fixtures.running_daemon import RunningDaemon, agent_source
from fixtures.terminal import Terminal

from rappd.cli.app import run


@pytest.fixture
def snapshot(idle: RunningDaemon) -> Path:
    """A snapshot of a machine with an agent and two twins, one of them awake."""
    idle.start()
    idle.drop("clock_agent.py", agent_source("Clock"))
    idle.cli("twins", "new", "gardener")
    idle.cli("twins", "new", "cook")
    idle.cli("twins", "boot", "gardener")
    idle.cli("twins", "chat", "cook", "hello")
    done = idle.cli("neighborhood", "snapshot", "--json")
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [one["event"] for one in events if one["event"] != "machine"] == ["drill", "done"]
    assert events[-1]["snapshot"]["restorable"]
    return Path(events[-1]["snapshot"]["path"])


def test_snapshot_is_listed_as_restorable_and_doctor_says_so(idle: RunningDaemon, snapshot: Path) -> None:
    assert snapshot.parent == idle.home / "eggs" / "neighborhood"
    listed = idle.cli("neighborhood", "snapshots").stdout
    assert "restorable, 20" in listed
    assert "Snapshot" in idle.cli("doctor").stdout


def test_hatch_under_a_running_daemon_restores_a_twin_and_wakes_it(
    idle: RunningDaemon, snapshot: Path
) -> None:
    rows = json.loads(idle.cli("twins", "list", "--json").stdout)["twins"]
    gardener = idle.home / "twins" / next(row["key"] for row in rows if row["name"] == "gardener")
    (gardener / "soul.md").unlink()
    (gardener / "notes.txt").write_text("mine")
    planned = json.loads(idle.cli("egg", "plan", str(snapshot), "--json").stdout)["plan"]
    assert planned["categories"]["twins"]["created"] >= 1
    assert planned["boot"] == [gardener.name]
    done = idle.cli("egg", "hatch", str(snapshot))
    assert done.returncode == 0, done.stderr + done.stdout
    assert (gardener / "soul.md").exists()
    assert (gardener / "notes.txt").read_text() == "mine"
    rows = json.loads(idle.cli("twins", "list", "--json").stdout)["twins"]
    assert {row["name"]: row["state"] for row in rows} == {"gardener": "awake", "cook": "asleep"}
    (gardener / "notes.txt").write_text("wet\n")
    idle.cli("twins", "stop", "gardener")
    sleeping = json.loads(idle.cli("neighborhood", "plan", str(snapshot), "--json").stdout)["plan"]
    assert not sleeping["nothing_to_do"], "the twin would wake"
    idle.cli("twins", "boot", "gardener")


def test_a_plan_settles_with_its_hatching(
    idle: RunningDaemon, snapshot: Path, make_daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    egg = tmp_path / "cook.egg"
    idle.cli("egg", "pack", "cook", "-o", str(egg))

    def asked(*words: str) -> tuple[str, str]:
        text = idle.cli(*words).stdout
        return text.splitlines()[-1], text

    for file, kind in ((str(egg), "egg"), (str(snapshot), "neighborhood")):
        last, text = asked(kind, "plan", file)
        assert last.startswith("Nothing to do: "), "what was said is here, and the twin is awake"
        assert "started again" not in text
        assert "is here already; nothing had to be written." in idle.cli(kind, "hatch", file).stdout
    fresh = make_daemon(
        "fresh", LLM_FAKE="1"
    )  # what was said waits beside the receipts until its first start
    assert "hatched" in fresh.cli("egg", "hatch", str(egg)).stdout
    assert fresh.cli("egg", "plan", str(egg)).stdout.endswith("Nothing to do: all of it is here.\n")
    fresh.start()
    assert fresh.cli("egg", "plan", str(egg)).stdout.endswith("Nothing to do: all of it is here.\n")
    last = fresh.cli("neighborhood", "plan", str(snapshot)).stdout.splitlines()[-1]
    assert "rappd neighborhood hatch" in last
    fresh.cli("neighborhood", "hatch", str(snapshot))
    planned = json.loads(fresh.cli("neighborhood", "plan", str(snapshot), "--json").stdout)["plan"]
    assert planned["nothing_to_do"]
    assert {row["created"] for row in planned["local"]} == {0}


def test_plan_approved_for_another_tree_exits_9_and_writes_nothing(
    idle: RunningDaemon, snapshot: Path, tmp_path: Path
) -> None:
    def here(*words: str) -> subprocess.CompletedProcess[str]:
        return idle.cli("neighborhood", *words)

    digest = json.loads(here("plan", str(snapshot), "--json").stdout)["plan"]["digest"]
    clock = idle.home / "brainstem" / "agents" / "clock_agent.py"
    clock.unlink()
    refused = here("hatch", str(snapshot), "--approved", digest, "--json")
    assert refused.returncode == 9
    assert json.loads(refused.stderr)["code"] == "plan_changed"
    assert not clock.exists()
    assert here("hatch", str(snapshot)).returncode == 0
    assert clock.exists()


def test_dry_run_in_an_empty_home_makes_nothing_at_all(
    snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "fresh"
    monkeypatch.setenv("RAPP_HOME", str(home))
    for words in (["plan"], ["hatch", "--dry-run"], ["plan", "--target", "local-simulate"]):
        assert run(["neighborhood", words[0], str(snapshot), *words[1:]]) == 0
    assert run(["egg", "plan", str(snapshot)]) == 0
    assert "Nothing was written." in capsys.readouterr().out
    assert not home.exists()


def test_simulation_starts_no_ssh(snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    spy = folder / "ssh"
    spy.write_text(f"#!/bin/sh\necho called >> {tmp_path}/called\n")
    spy.chmod(0o755 | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    home = tmp_path / "fresh"
    home.mkdir(mode=0o700)
    peer = {"name": "pi", "url": "http://pi:7071", "ssh_user": "ada", "ssh_host": "pi"}
    (home / "peers.json").write_text(json.dumps({"peers": [peer]}))
    monkeypatch.setenv("RAPP_HOME", str(home))
    words = ["neighborhood", "hatch", str(snapshot), "--target", "local-simulate", "--restore-archived"]
    assert run([*words, "--overwrite-peer-twins"]) == 0
    assert len(list((home / "twins").glob("*/soul.md"))) == 2
    assert not (tmp_path / "called").exists()


def test_unknown_snapshot_exits_4_and_foreign_egg_5(idle: RunningDaemon, tmp_path: Path) -> None:
    missing = idle.cli("neighborhood", "hatch", "nothing-here", "--json")
    assert missing.returncode == 4
    assert json.loads(missing.stderr)["code"] == "no_such_snapshot"
    idle.cli("twins", "new", "baker")
    egg = tmp_path / "baker.egg"
    idle.cli("egg", "pack", "baker", "-o", str(egg))
    foreign = idle.cli("neighborhood", "plan", str(egg), "--json")
    assert foreign.returncode == 5
    assert json.loads(foreign.stderr)["code"] == "not_a_snapshot"


def test_snapshot_names_this_machine_as_its_daemon_does(idle: RunningDaemon) -> None:
    idle.environment["RAPPD_NAME"] = "kitchen"
    idle.start()
    idle.environment["RAPPD_NAME"] = "elsewhere"
    done = idle.cli("neighborhood", "snapshot", "--json", "--no-drill")
    assert done.returncode == 0, done.stderr
    machines = {
        one["machine"] for line in done.stdout.splitlines() if (one := json.loads(line))["event"] == "machine"
    }
    assert machines == {"kitchen"}


def test_hatch_asks_before_another_machine_is_written_to(idle: RunningDaemon, tmp_path: Path) -> None:
    twin = tmp_path / "stick/twins" / homes.TWIN
    homes.fill_twin(twin)
    entry = {"name": "stick", "folder": str(tmp_path / "stick")}
    idle.home.mkdir(mode=0o700, exist_ok=True)
    (idle.home / "peers.json").write_text(json.dumps({"peers": [entry]}))
    assert idle.cli("neighborhood", "snapshot", "--no-drill").returncode == 0
    (egg,) = (idle.home / "eggs/neighborhood").glob("*.egg")
    shutil.rmtree(twin)
    for answer, is_written in (("n", False), ("y", True)):
        hatch = Terminal(idle, "neighborhood", "hatch", egg.stem)
        asked = hatch.read_until(lambda seen: "[y/N]" in seen.text)
        assert "create     gardener" in asked.text
        assert "Nothing was written" not in asked.text
        hatch.type(f"{answer}\n")
        assert ("Nothing was written." in hatch.to_end().text) is not is_written
        assert (twin / "soul.md").exists() is is_written


def test_hatch_asks_before_only_agents_of_another_machine_are_written(
    idle: RunningDaemon, tmp_path: Path
) -> None:
    agents = tmp_path / "stick/brainstem/agents"
    agents.mkdir(parents=True)
    homes.fill_twin(tmp_path / "stick/twins" / homes.TWIN)
    (agents / "clock_agent.py").write_text("clock = 1\n")
    idle.home.mkdir(mode=0o700, exist_ok=True)
    entry = {"name": "stick", "folder": str(tmp_path / "stick")}
    (idle.home / "peers.json").write_text(json.dumps({"peers": [entry]}))
    assert idle.cli("neighborhood", "snapshot", "--name", "one", "--no-drill").returncode == 0
    (agents / "clock_agent.py").unlink()
    assert idle.cli("neighborhood", "hatch", "one").returncode == 6
    assert not (agents / "clock_agent.py").exists()
    assert idle.cli("neighborhood", "hatch", "one", "--yes").returncode == 0
    assert (agents / "clock_agent.py").exists()


def test_machine_written_down_without_a_way_to_read_it_is_named(idle: RunningDaemon) -> None:
    idle.home.mkdir(mode=0o700, exist_ok=True)
    entry = {"name": "attic", "url": "http://attic.invalid:7071"}
    (idle.home / "peers.json").write_text(json.dumps({"peers": [entry]}))
    told = " ".join(idle.cli("neighborhood", "snapshot", "--no-drill").stdout.split())
    assert "attic is not in it: no way to read it: add ssh_host to its entry in peers.json" in told


def test_drill_of_a_file_from_elsewhere_says_what_can_be_done(idle: RunningDaemon, tmp_path: Path) -> None:
    egg = tmp_path / "one.egg"
    assert idle.cli("neighborhood", "snapshot", "--name", "one", "--no-drill").returncode == 0
    shutil.copy(idle.home / "eggs/neighborhood/one.egg", egg)
    said = " ".join(idle.cli("neighborhood", "drill", str(egg)).stderr.split())
    assert "was not taken here, so no drill of it can be noted" in said
    assert idle.cli("neighborhood", "plan", str(egg)).returncode == 0


def test_send_names_a_snapshot_as_plan_does(idle: RunningDaemon) -> None:
    idle.start()
    assert idle.cli("neighborhood", "snapshot", "--name", "one", "--no-drill").returncode == 0
    assert 'No peer "pi"' in idle.cli("neighborhood", "send", "one", "pi").stderr
    assert 'No snapshot "two"' in idle.cli("neighborhood", "send", "two", "pi").stderr


def test_plan_on_a_fresh_home_offers_the_simulation(
    idle: RunningDaemon, make_daemon: Callable[..., RunningDaemon], tmp_path: Path
) -> None:
    homes.fill_twin(tmp_path / "stick/twins" / homes.TWIN)
    idle.home.mkdir(mode=0o700, exist_ok=True)
    entry = {"name": "stick", "folder": str(tmp_path / "stick")}
    (idle.home / "peers.json").write_text(json.dumps({"peers": [entry]}))
    egg = tmp_path / "one.egg"
    assert idle.cli("neighborhood", "snapshot", "--no-drill", "-o", str(egg)).returncode == 0
    laptop = make_daemon("laptop")
    offered = f"rappd neighborhood hatch {egg} --target local-simulate"
    assert offered in laptop.cli("neighborhood", "plan", str(egg)).stdout
    assert laptop.cli(*shlex.split(offered)[1:], "--yes").returncode == 0
    assert list((laptop.home / "simulated/stick/twins").glob("*/soul.md"))
    assert "local-simulate" not in idle.cli("neighborhood", "plan", str(egg)).stdout, (
        "here it goes back in place"
    )


def test_twin_left_out_for_its_size_is_named_with_the_option_that_takes_it(
    idle: RunningDaemon, tmp_path: Path
) -> None:
    homes.fill_twin(tmp_path / "stick/twins" / homes.TWIN)
    idle.home.mkdir(mode=0o700, exist_ok=True)
    entry = {"name": "stick", "folder": str(tmp_path / "stick")}
    (idle.home / "peers.json").write_text(json.dumps({"peers": [entry]}))
    done = idle.cli("neighborhood", "snapshot", "--name", "one", "--no-drill", "--max-twin-bytes", "10")
    assert done.returncode == 0
    option = re.search(
        r"left out, too large: stick/gardener, \d+ bytes  (--max-twin-bytes \d+)$", done.stdout, re.M
    )
    assert option, done.stdout
    done = idle.cli("neighborhood", "snapshot", "--name", "two", "--no-drill", *option[1].split())
    assert "too large" not in done.stdout


def test_kept_files_of_another_machine_are_named_with_a_command_that_gets_them(
    idle: RunningDaemon, tmp_path: Path
) -> None:
    agents = tmp_path / "stick/brainstem/agents"
    homes.fill_twin(tmp_path / "stick/twins" / homes.TWIN)
    (agents / "weather").mkdir(parents=True)
    (agents / "clock_agent.py").write_text("clock = 1\n")
    (agents / "weather/rain.py").write_text("mine")
    idle.home.mkdir(mode=0o700, exist_ok=True)
    entry = {"name": "stick", "folder": str(tmp_path / "stick")}
    (idle.home / "peers.json").write_text(json.dumps({"peers": [entry]}))
    assert idle.cli("neighborhood", "snapshot", "--name", "one", "--no-drill").returncode == 0
    for words in (["plan", "one"], ["hatch", "one", "--yes"]):
        told = idle.cli("neighborhood", *words).stdout
        command = shlex.split(told.partition("rappd egg extract ")[2].splitlines()[0])
        into = tmp_path / words[0]
        assert idle.cli("egg", "extract", command[0], str(into)).returncode == 0
        assert [file.read_text() for file in into.rglob("rain.py")] == ["mine"]


@pytest.fixture
def small_home(tmp_path: Path) -> Iterator[Path]:
    """A home with three twins of 8 MB each, on a disk of its own."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200m", "tmpfs", disk], check=True)
    try:
        home = disk / "home"
        home.mkdir(mode=0o700)
        for key in "abc":
            twin = home / "twins" / (key * 64)
            homes.fill_twin(twin)
            (twin / "map.bin").write_bytes(os.urandom(8_000_000))
        yield home
    finally:
        subprocess.run(["umount", disk], check=True)


def resize(home: Path, megabytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={megabytes}m", home.parent], check=True)


@pytest.mark.needs_root
def test_snapshot_that_no_room_is_left_to_try_is_not_called_unrestorable(
    idle: RunningDaemon, small_home: Path
) -> None:
    resize(small_home, 65)
    taken = idle.cli("neighborhood", "snapshot", RAPP_HOME=str(small_home))
    told = " ".join(taken.stdout.split())
    assert (taken.returncode, "cannot be restored" in told) == (1, False), taken.stderr
    assert "is not tried: this machine's disk is full. Free " in told
    assert "not tried" in idle.cli("neighborhood", "snapshots", RAPP_HOME=str(small_home)).stdout
    name = next((small_home / "eggs/neighborhood").glob("*.egg")).stem
    again = idle.cli("neighborhood", "drill", name, RAPP_HOME=str(small_home))
    assert (again.returncode, "is not tried" in again.stderr) == (1, True), again.stderr
    resize(small_home, 200)
    assert idle.cli("neighborhood", "drill", name, RAPP_HOME=str(small_home)).returncode == 0


@pytest.mark.needs_root
@pytest.mark.parametrize("megabytes", [30, 38, 45])
def test_disk_that_fills_up_with_this_machines_part_is_told_in_words(
    idle: RunningDaemon, small_home: Path, megabytes: int
) -> None:
    resize(small_home, megabytes)
    taken = idle.cli("neighborhood", "snapshot", RAPP_HOME=str(small_home))
    said = " ".join((taken.stdout + taken.stderr).split())
    assert taken.returncode in (1, 7, 9), said
    assert "Traceback" not in said
    assert "disk is full" in said or "No space left on device" in said, said
    assert list(small_home.rglob("*.tmp")) == []
