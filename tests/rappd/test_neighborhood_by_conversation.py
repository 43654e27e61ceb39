"""Snapshots of the neighborhood by conversation, without a model; and who may not have them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fixtures import member_homes as homes
from fixtures.running_daemon import RunningDaemon


@pytest.fixture
def stick(tmp_path: Path) -> Path:
    """A machine's home in a folder, with two twins."""
    home = tmp_path / "stick"
    for key, name in ((homes.TWIN, "gardener"), (homes.OTHER, "cook")):
        folder = home / "twins" / key
        folder.mkdir(parents=True)
        (folder / "rappid.json").write_text(json.dumps({"rappid": f"rappid:@me/{name}:{key}", "name": name}))
        (folder / "soul.md").write_text(f"You are {name}.\n")
    return home


@pytest.fixture
def desk(make_daemon: Callable[..., RunningDaemon], stick: Path) -> RunningDaemon:
    desk = make_daemon("desk")
    desk.home.mkdir(mode=0o700)
    (desk.home / "peers.json").write_text(json.dumps({"peers": [{"name": "stick", "folder": str(stick)}]}))
    return desk.start()


def said(desk: RunningDaemon, text: str) -> str:
    answer = desk.post("/chat", {"user_input": text}, control=True).json()
    found: str = answer["response"]
    return found


def newest(desk: RunningDaemon) -> str:
    name: str = desk.get("/neighborhood", control=True).json()["snapshots"][0]["name"]
    return name


def test_snapshot_plan_and_restore_by_conversation(desk: RunningDaemon, stick: Path) -> None:
    told = said(desk, "snapshot my machines")
    assert "holds 2 machines and 2 twins; it is restorable." in told
    name = newest(desk)
    assert f"- {name}: 2 machines, 2 twins, restorable, tried 20" in said(desk, "what snapshots are there?")
    assert "- stick: gardener, cook" in said(desk, "what is in the last snapshot?")
    planned = said(desk, f"plan the restore of {name} as a simulation")
    assert "twins of other machines: 2 new, 0 replaced, 0 stay" in planned
    assert not (desk.home / "simulated").exists()
    assert "is restored as a simulation." in said(desk, f"restore {name} as a simulation")
    assert len(list((desk.home / "simulated" / "stick" / "twins").glob("*/soul.md"))) == 2


def test_snapshot_is_called_as_it_was_asked_for(desk: RunningDaemon) -> None:
    (desk.home / "peers.json").unlink()
    told = said(desk, "take a snapshot called sunday")
    assert "The snapshot sunday holds 1 machine and 0 twins; it is restorable." in told
    assert "- sunday: 1 machine, 0 twins, restorable" in said(desk, "what snapshots are there?")


def test_restore_that_writes_elsewhere_needs_a_yes_to_the_plan_that_was_shown(
    desk: RunningDaemon, stick: Path
) -> None:
    said(desk, "snapshot my machines")
    name, cook = newest(desk), stick / "twins" / homes.OTHER
    shutil.rmtree(cook)
    for text in (f"yes, restore {name}", f"restore {name}"):  # a yes before anything was shown is none
        assert f'"yes, restore {name}" does it' in said(desk, text)
        assert not cook.exists()
    shutil.rmtree(stick / "twins" / homes.TWIN)
    assert "changed since you looked; nothing was written" in said(desk, f"yes, restore {name}")
    assert not cook.exists()
    said(desk, f"restore {name}")
    assert "is restored." in said(desk, f"yes, restore {name}")
    assert (cook / "soul.md").read_text() == "You are cook.\n"


def test_restore_that_writes_only_agents_elsewhere_needs_a_yes(desk: RunningDaemon, stick: Path) -> None:
    agent = stick / "brainstem" / "agents" / "clock_agent.py"
    agent.parent.mkdir(parents=True)
    agent.write_text("clock = 1\n")
    said(desk, "snapshot my machines")
    agent.unlink()
    name = newest(desk)
    assert f'"yes, restore {name}" does it' in said(desk, f"restore {name}")
    assert not agent.exists()
    assert "is restored." in said(desk, f"yes, restore {name}")
    assert agent.exists()


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", ""), ("GET", "/work"), ("GET", "/variables"), *(("POST", f"/{verb}") for verb in
     ("probe", "snapshot", "cancel", "drill", "diff", "plan", "restore", "unasked_tokens"))],
)  # fmt: skip
def test_neighborhood_routes_need_the_operator(fake_daemon: RunningDaemon, method: str, path: str) -> None:
    body = {} if method == "POST" else None
    assert fake_daemon.request(method, f"/neighborhood{path}", body).status == 403


def test_snapshot_in_an_everyday_turn_is_not_taken(desk: RunningDaemon) -> None:
    desk.chat("snapshot my machines")
    assert desk.get("/neighborhood", control=True).json()["snapshots"] == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("take a snapshot every day at 3", "No snapshots are scheduled, and none was taken now."),
        ("when is the next snapshot?", "To set the times: rappd neighborhood schedule daily 03:00"),
        ("compare the last two snapshots", "There is no snapshot yet."),
        ("is everything backed up?", "There is no snapshot yet."),
    ],
)
def test_question_or_wish_about_times_takes_no_snapshot(desk: RunningDaemon, text: str, words: str) -> None:
    assert words in said(desk, text)
    assert desk.get("/neighborhood", control=True).json()["snapshots"] == []


def test_schedule_is_told_by_conversation(desk: RunningDaemon) -> None:
    rule = {"rule": "daily 03:00", "zone": "Europe/Berlin"}
    assert desk.request("PUT", "/neighborhood/schedule", rule, control=True).status == 200
    assert "daily 03:00 (Europe/Berlin); the next on" in said(desk, "when is the next snapshot?")


def test_number_in_a_sentence_is_no_limit_of_bytes(desk: RunningDaemon) -> None:
    said(desk, "neighborhood snapshot number 3 please")
    taken = desk.get("/neighborhood", control=True).json()["snapshots"]
    assert [row["twins"] for row in taken] == [2]


def test_request_for_what_is_not_there_is_named(desk: RunningDaemon) -> None:
    bad = desk.post("/neighborhood/plan", {"snapshot": "x", "options": {"target": "moon"}}, control=True)
    assert (bad.status, bad.json()["code"]) == (400, "mistyped")
    missing = desk.post("/neighborhood/plan", {"snapshot": "nothing"}, control=True)
    assert (missing.status, missing.json()["code"]) == (404, "no_such_snapshot")
    unknown = desk.post("/neighborhood/cancel", {"work": "nothing"}, control=True)
    assert unknown.status == 404
