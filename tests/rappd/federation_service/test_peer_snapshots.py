"""``rappd neighborhood`` over a paired machine's rappd: read by the command, written for its owner to approve."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import member_homes as homes
from fixtures.machines import Machine, pair
from fixtures.running_daemon import agent_source

RAPPD = Path(sys.executable).with_name("rappd")
FRAMES = ".brainstem_data/frames.json"


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
        [RAPPD, "neighborhood", *arguments], env=environment, capture_output=True, text=True, timeout=100
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


def test_conversations_of_a_twin_travel_to_a_machine_of_the_same_owner_alone(
    machines: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    desk, pi, shed = machines
    shed.owner("POST", "/peers/desk/scopes", {"scopes": ["EGG", "SNAPSHOT"]})
    for machine, word in ((pi, "green"), (shed, "secretive")):
        machine.owner("POST", "/twins/gardener/chat", {"user_input": f"remember that the gate is {word}"})
    egg, later = tmp_path / "all.egg", tmp_path / "later.egg"
    assert run(desk, "snapshot", "--only", "pi", "--only", "shed", "--out", str(egg)).returncode == 0
    assert "gate is green" in str(held_by(egg, "pi").get(FRAMES))
    assert FRAMES not in held_by(egg, "shed")

    pi.owner("POST", "/twins/gardener/chat", {"user_input": "which colour has it?"})
    assert run(desk, "snapshot", "--only", "pi", "--out", str(later)).returncode == 0
    assert "which colour" in str(held_by(later, "pi")[FRAMES]), "what was said alone makes it read anew"

    shutil.rmtree(pi.home / "twins" / homes.TWIN)
    parsed(run(desk, "hatch", str(later), "--yes", "--json"))
    (row,) = pi.owner("GET", "/eggs/arrived")["arrived"]
    with zipfile.ZipFile(row["path"]) as staged:
        assert "gate is green" in str(staged.read("data/frames.json"))
    pi.owner("POST", "/eggs/hatch", {"path": row["path"]})


def test_archive_estate_of_a_paired_machine_without_ssh_says_what_to_do(
    machines: tuple[Machine, Machine, Machine],
) -> None:
    desk, *_ = machines
    done = desk.cli("fleet", "archive_estate", "--filter", "kind=twin")
    assert done.returncode == 7, done.stdout
    assert [line for line in done.stdout.splitlines() if "pi" in line] == [
        "✗ pi: A paired machine archives for you over SSH alone; nothing was done there. "
        'Write {"name": "pi", "ssh_host": "HOST"} into peers.json.'
    ]
    entry = {"name": "pi", "ssh_host": "127.0.0.1:1"}
    (desk.home / "peers.json").write_text(json.dumps({"peers": [entry]}))
    asked = desk.cli("fleet", "archive_estate", "--filter", "kind=twin").stdout
    assert "SSH alone" not in asked and asked.count("pi") == 1, asked


def held_by(egg: Path, machine: str) -> dict[str, bytes]:
    """The files of a machine's twin in a snapshot, by their paths in it."""
    with zipfile.ZipFile(egg) as opened:
        content = opened.read(f"peers/{machine}/twins/{homes.TWIN}.tar.gz")
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        return {
            one.name.partition("/")[2]: files.extractfile(one).read()  # type: ignore[union-attr]
            for one in files.getmembers()
        }


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
    assert run(desk, "probe", "pi").stdout == "✗ pi: pi is away — rappd peers list\n"
    desk.stop()
    done = run(desk, "probe", "pi")
    assert (done.returncode, done.stdout.splitlines()) == (
        7,
        ["✗ pi: pi is read through rappd, which isn't running here — rappd start"],
    )
