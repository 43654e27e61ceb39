"""All that waits for the owner in one list: what of it is there, how each ends, and that no reload nor stop loses it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures.machines import Machine, acquaint
from fixtures.running_daemon import RunningDaemon, agent_source

from twins.trust.quarantine import QuarantineList

SERVICE = 'name = "oven"\n\n\ndef handle(method, path, body):\n    return {"warm": True}, 200\n'


def hold(home: Path, path: str, source: str, origin: str = "kitchen.egg") -> None:
    place = home / "brainstem" / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text(source)
    digest = hashlib.sha256(source.encode()).hexdigest()
    QuarantineList(home / "held.json", home).hold(place, digest, "Nobody signed it.", origin)


def waiting(daemon: RunningDaemon) -> dict[str, dict[str, Any]]:
    rows: list[dict[str, Any]] = daemon.get("/waiting", control=True).json()["waiting"]
    return {row["key"]: row for row in rows}


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[Callable[[str], Machine]]:
    running: list[Machine] = []

    def start(name: str) -> Machine:
        running.append(Machine(tmp_path / name, name, LLM_FAKE="1").start())
        return running[-1]

    yield start
    for one in running:
        one.stop()


def test_quarantined_files_wait_until_approved_or_refused(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    hold(daemon.home, "agents/oven_agent.py", agent_source("Oven"))
    hold(daemon.home, "services/oven_service.py", SERVICE)
    hold(daemon.home, "workflows/tale.json", "{}")
    hold(daemon.home, ".env", "COLOUR=green\n")
    daemon.start()
    found = waiting(daemon)
    assert {row["path"]: row["kind"] for row in found.values() if "path" in row} == {
        "agents/oven_agent.py": "code",
        "services/oven_service.py": "code",
        "workflows/tale.json": "workflow",
        ".env": "code",
    }
    agent = found["code::agents/oven_agent.py"]
    assert agent["what"] == "agents/oven_agent.py came in kitchen.egg; it is kept, and not run."
    assert (agent["why"], agent["news"]) == ("Nobody signed it.", False)
    daemon.stop()
    daemon.start()
    assert waiting(daemon).keys() == found.keys(), "a stop loses nothing"

    for name in ("services/oven_service.py", ".env", "agents/oven_agent.py"):
        answer = daemon.post("/agents/refuse", {"filename": name}, control=True).json()
        assert not (daemon.home / "brainstem" / name).exists()
        assert f"code::{name}" not in waiting(daemon)
        assert daemon.post("/agents/undo", {"undo": answer["undo"]}, control=True).status == 200
        assert f"code::{name}" in waiting(daemon), "it waits again, and does not run"
    assert daemon.get("/api/oven").status == 403
    assert daemon.agent_names().count("Oven") == 0
    for name in ("services/oven_service.py", ".env", "oven_agent.py", "workflows/tale.json"):
        assert daemon.post("/agents/approve", {"filename": name}, control=True).status == 200
    assert waiting(daemon) == {}


def test_refused_file_changed_meanwhile_is_not_brought_back(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1")
    hold(daemon.home, "services/oven_service.py", SERVICE)
    daemon.drop("mine_agent.py", agent_source("Mine"))
    daemon.start()
    token = daemon.post("/agents/refuse", {"filename": "services/oven_service.py"}, control=True).json()[
        "undo"
    ]
    kept = daemon.home / "brainstem/.brainstem_data/kept/refused" / token
    (kept / "file").write_text(SERVICE.replace("True", "False"))
    assert daemon.post("/agents/undo", {"undo": token}, control=True).status == 404
    (kept / "file").write_text(SERVICE)
    assert daemon.post("/agents/undo", {"undo": token}, control=True).status == 200
    service = daemon.home / "brainstem/services/oven_service.py"
    service.write_text(SERVICE + "\n")  # changed on disk, it is refused and brought back as it is
    token = daemon.post("/agents/refuse", {"filename": "services/oven_service.py"}, control=True).json()[
        "undo"
    ]
    assert daemon.post("/agents/undo", {"undo": token}, control=True).status == 200
    assert service.read_text() == SERVICE + "\n"
    token = daemon.post("/agents/refuse", {"filename": "services/oven_service.py"}, control=True).json()[
        "undo"
    ]
    kept = daemon.home / "brainstem/.brainstem_data/kept/refused" / token
    (kept / "path").write_text("../../services/oven_service.py")
    assert daemon.post("/agents/undo", {"undo": token}, control=True).status == 400
    assert not list(daemon.home.rglob("oven_service.py"))
    refused = daemon.post("/agents/refuse", {"filename": "mine_agent.py"}, control=True)
    assert refused.status == 404, "only what is quarantined is refused"


def test_only_the_operator_sees_what_waits(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    assert daemon.get("/waiting").status == 403
    assert daemon.post("/agents/refuse", {"filename": "clock_agent.py"}).status == 403


def test_received_egg_waits_with_its_plan_until_hatched(
    machines: Callable[..., Machine], tmp_path: Path
) -> None:
    desk, pi = machines("desk"), machines("pi")
    acquaint(desk, pi)
    egg = tmp_path / "rose.egg"
    pi.cli("twins", "new", "Rose", "--kind", "place")
    assert pi.cli("egg", "pack", "Rose", "-o", egg).returncode == 0
    assert pi.cli("egg", "send", egg, "desk").returncode == 0
    desk.wait_for(lambda: waiting(desk), what="the egg")
    [row] = waiting(desk).values()
    assert (row["kind"], row["what"]) == ("egg", "pi sent rose.egg; nothing of it is in use yet.")
    looked = desk.post("/eggs/look", {"path": row["path"]}, control=True).json()
    assert looked["plan"]["create"]["count"] > 0
    assert [row["key"]] == list(waiting(desk)), "looking answers nothing"
    body = {"path": row["path"], "approved": looked["plan"]["digest"]}
    assert desk.post("/eggs/hatch", body, control=True).status == 200
    assert waiting(desk) == {}


def test_machine_that_asks_to_pair_waits_until_it_is_answered(machines: Callable[..., Machine]) -> None:
    desk, pi = machines("desk"), machines("pi")
    begun = pi.post("/pairings", {"peer": desk.address}, control=True).json()["pairing"]
    desk.wait_for(lambda: waiting(desk), what="the request")
    [row] = waiting(desk).values()
    assert (row["kind"], row["what"]) == ("pairing", "pi wants to pair with this machine.")
    assert row["pairing"]["attempt"]
    assert waiting(pi) == {}, "the side that asks does not wait for its own owner's list"
    pi.request("DELETE", f"/pairings/{begun['attempt']}", control=True)
    desk.wait_for(lambda: not waiting(desk), what="its end")
