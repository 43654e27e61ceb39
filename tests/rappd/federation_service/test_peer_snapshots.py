"""``rappd neighborhood`` over a paired machine's rappd: read by the command, written for its owner to approve."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import member_homes as homes
from fixtures.machines import Machine, pair
from fixtures.running_daemon import agent_source

RAPPD = Path(sys.executable).with_name("rappd")


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Machine, Machine]]:
    desk, pi, shed = (
        Machine(tmp_path / name, name, LLM_FAKE="1", RAPPD_NEARBY="off") for name in ("desk", "pi", "shed")
    )
    try:
        for machine in (desk, pi, shed):
            machine.start()
        pair(desk, pi)
        pair(desk, shed, "friend")
        for machine in (pi, shed):
            twin = machine.home / "twins" / homes.TWIN
            homes.fill_twin(twin)
            (twin / 'say "hi".txt').unlink()  # the installer refuses that name
        yield desk, pi, shed
    finally:
        for machine in (desk, pi, shed):
            machine.stop()


def run(machine: Machine, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **machine.environment}
    return subprocess.run(
        [RAPPD, "neighborhood", *arguments], env=environment, capture_output=True, text=True, timeout=90
    )


def parsed(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode in (0, 7), done.stderr
    return json.loads(done.stdout)


def test_snapshot_and_restore_of_a_paired_machine(
    machines: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    desk, pi, _ = machines
    rows = {row["name"]: row for row in parsed(run(desk, "members", "--json"))["members"]}
    assert rows["pi"]["way"] == "rappd"
    assert "✓ pi: 1 twin," in run(desk, "probe", "pi").stdout
    pi.drop("news_agent.py", agent_source("News", 'return "news"'))
    egg = tmp_path / "all.egg"
    done = run(desk, "snapshot", "--out", str(egg), "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    machines_read = {
        event["machine"] for event in map(json.loads, done.stdout.splitlines()) if event["event"] == "machine"
    }
    assert machines_read == {"desk", "pi"}, "a friend's machine is not read unless it is named"

    twin = pi.home / "twins" / homes.TWIN
    before = homes.files_in(twin)
    shutil.rmtree(twin)
    news = pi.home / "brainstem/agents/news_agent.py"
    source = news.read_bytes()
    news.unlink()
    hatched = run(desk, "hatch", str(egg), "--yes", "--json")
    found = parsed(hatched)["hatched"]
    assert found["staged"] == ["pi/gardener", "pi/agents"], found
    assert not twin.exists(), "its owner has not said yes yet"
    rows = pi.owner("GET", "/eggs/arrived")["arrived"]
    (row,) = [one for one in rows if one["egg"]["name"] == "gardener"]
    (agents,) = [one for one in rows if one is not row]
    assert row["from"] == "desk"
    pi.owner("POST", "/eggs/hatch", {"path": agents["path"]})
    assert news.read_bytes() == source
    assert "news_agent.py" in (pi.home / "held.json").read_text(), "nobody trusts this signer there"
    pi.owner("POST", "/eggs/hatch", {"path": row["path"]})
    assert (twin / "soul.md").read_bytes() == before["soul.md"]
    assert (twin / "big.bin").read_bytes() == before["big.bin"]
    assert "water_agent.py" in (pi.home / "held.json").read_text(), "nobody trusts this signer there"
    again = parsed(run(desk, "hatch", str(egg), "--yes", "--json"))["hatched"]
    assert again["staged"] == []
    assert len(pi.owner("GET", "/eggs/arrived")["arrived"]) == 0
    assert not [one for one in (desk.home / "eggs").rglob("*") if "outgoing_twins/" in str(one)]


def test_restoring_again_before_the_yes_stages_nothing_twice_and_archived_twins_stay_archived(
    machines: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    desk, pi, _ = machines
    homes.fill_twin(pi.home / "twins" / homes.OTHER, name="old")
    (pi.home / "twins" / homes.OTHER / 'say "hi".txt').unlink()
    assert pi.cli("twins", "archive", "old").returncode == 0
    egg = tmp_path / "all.egg"
    assert run(desk, "snapshot", "--include-archived", "--out", str(egg)).returncode == 0
    for folder in (homes.TWIN, f".archive/{homes.OTHER}"):
        shutil.rmtree(pi.home / "twins" / folder)

    for _ in range(2):
        found = parsed(run(desk, "hatch", str(egg), "--restore-archived", "--yes", "--json"))["hatched"]
        assert sorted(found["staged"]) == ["pi/gardener", "pi/old"]
    arrived = pi.owner("GET", "/eggs/arrived")["arrived"]
    assert sorted(row["egg"]["name"] for row in arrived) == ["gardener", "old"]
    assert len(pi.owner("GET", "/notices")["notices"]) == 2
    for row in arrived:
        pi.owner("POST", "/eggs/hatch", {"path": row["path"]})
    assert (pi.home / "twins" / homes.TWIN / "soul.md").exists()
    assert (pi.home / "twins/.archive" / homes.OTHER / "soul.md").exists()
    assert [one["name"] for one in pi.owner("GET", "/twins")["twins"]] == ["gardener"]
    assert "old" in pi.cli("twins", "unarchive", "old").stdout


def test_friend_is_read_when_shared_and_gets_nothing_back_by_its_name(
    machines: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    desk, _, shed = machines
    refused = run(desk, "probe", "shed")
    assert refused.returncode == 7
    assert "shed does not let this machine take snapshots" in refused.stdout
    assert "rappd peers scopes" in refused.stdout
    shed.owner("POST", "/peers/desk/scopes", {"scopes": ["EGG", "SNAPSHOT"]})
    assert "✓ shed: 1 twin," in run(desk, "probe", "shed").stdout
    egg = tmp_path / "shed.egg"
    assert run(desk, "snapshot", "--only", "shed", "--out", str(egg)).returncode == 0
    shutil.rmtree(shed.home / "twins" / homes.TWIN)
    restored = run(desk, "hatch", str(egg), "--yes", "--json")
    assert restored.returncode == 7
    assert parsed(restored)["hatched"]["staged"] == []
    assert shed.owner("GET", "/eggs/arrived")["arrived"] == []


def test_probe_peer_away_or_daemon_down_says_so_in_one_line(
    machines: tuple[Machine, Machine, Machine],
) -> None:
    desk, pi, _ = machines
    pi.stop()
    assert "✗ pi: pi is away." in run(desk, "probe", "pi").stdout
    desk.stop()
    done = run(desk, "probe", "pi")
    assert (done.returncode, done.stdout.splitlines()) == (
        7,
        ["✗ pi: pi is read through rappd, which isn't running here. rappd start"],
    )
