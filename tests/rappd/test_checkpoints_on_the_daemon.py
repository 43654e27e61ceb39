"""Checkpoints on a running daemon: a twin that is running goes back, sleeps meanwhile, and remembers as it did then."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from fixtures.loopback_server import FakeModel, calls, says
from fixtures.running_daemon import RunningDaemon, agent_source

pytestmark = pytest.mark.own_process


class Garden:
    """A daemon, and the model that thinks for its twins."""

    def __init__(self, daemon: RunningDaemon, model: FakeModel) -> None:
        self.daemon = daemon
        self.model = model

    def post(self, path: str, body: dict[str, Any] | None = None, *, status: int = 200) -> dict[str, Any]:
        answer = self.daemon.post(path, body, control=True)
        assert answer.status == status, answer.body
        found: dict[str, Any] = answer.json()
        return found

    def get(self, path: str) -> dict[str, Any]:
        found: dict[str, Any] = self.daemon.get(path, control=True).json()
        return found

    def new(self, name: str) -> str:
        key: str = self.post("/twins", {"name": name})["key"]
        return key

    def folder(self, key: str) -> Path:
        return self.daemon.home / "twins" / key

    def runs(self, key: str, agent: str, **arguments: Any) -> str:
        self.model.will(calls((agent, arguments)), says("done"))
        self.post(f"/twins/{key}/chat", {"user_input": "go", "session_id": "one"})
        return self.model.results()[agent]

    def remembers(self, key: str) -> str:
        said = self.runs(key, "ContextMemory")
        return f"{self.model.system()}\n{said}"


@pytest.fixture(scope="module")
def garden(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Garden]:
    model = FakeModel()
    model.start()
    home = tmp_path_factory.mktemp("garden") / "home"
    daemon = RunningDaemon(home, OPENAI_BASE_URL=model.url, OPENAI_MODEL="small", RAPPD_NAME="desk").start()
    try:
        yield Garden(daemon, model)
    finally:
        daemon.stop()
        model.stop()


def test_running_twin_is_restored_and_runs_again(garden: Garden) -> None:
    key = garden.new("gardener")
    kettle = garden.folder(key) / "agents" / "kettle_agent.py"
    kettle.write_text(agent_source("Kettle", 'return "It boils."'))
    garden.runs(key, "ManageMemory", memory_type="fact", content="The well is deep.")
    port = garden.post(f"/twins/{key}/boot")["port"]
    made = garden.post(f"/twins/{key}/checkpoints", {"note": "spring"})["checkpoint"]
    assert made["records"] > 0

    garden.runs(key, "ManageMemory", memory_type="fact", content="The well is dry.")
    kettle.write_text(agent_source("Kettle", 'return "It leaks."'))
    time.sleep(0.6)  # files are looked at twice a second at most
    assert garden.runs(key, "Kettle") == "It leaks."
    garden.daemon.request("PUT", f"/twins/{key}/soul", {"soul": "You are glum."}, control=True)
    said = garden.get(f"/threads?workspace={key}")

    told = garden.post(f"/twins/{key}/checkpoints/rollback", {})
    assert (told["mode"], told["before"]) == ("dry-run", None)
    assert {"agents/kettle_agent.py", "soul.md"} <= set(told["restored"])
    assert garden.runs(key, "Kettle") == "It leaks.", "only told"

    done = garden.post(f"/twins/{key}/checkpoints/rollback", {"confirm": True})
    assert done["checkpoint"]["id"] == made["id"]
    assert done["before"]["note"] == f"before going back to {made['id']}"
    [row] = [row for row in garden.get("/twins")["twins"] if row["key"] == key]
    assert (row["state"], row["port"]) == ("awake", port)
    assert garden.runs(key, "Kettle") == "It boils."
    recalled = garden.remembers(key)
    assert "The well is deep." in recalled
    assert "The well is dry." not in recalled
    assert "You are glum." not in garden.model.system()

    after = garden.get(f"/threads?workspace={key}")
    assert {row["id"] for row in said["threads"]} <= {row["id"] for row in after["threads"]}
    assert garden.daemon.cli("threads", "verify").returncode == 0, "the record only ever goes on"

    garden.post(f"/twins/{key}/checkpoints/rollback", {"checkpoint": done["before"]["id"], "confirm": True})
    assert "The well is dry." in garden.remembers(key)
    notes = [one["note"] for one in garden.get(f"/twins/{key}/checkpoints")["checkpoints"]]
    assert notes[0] == "spring"
    assert len(notes) == 3


def test_a_twin_that_slept_sleeps_on(garden: Garden) -> None:
    key = garden.new("sleeper")
    garden.post(f"/twins/{key}/checkpoints", {})
    (garden.folder(key) / "soul.md").write_text("Other.")
    garden.post(f"/twins/{key}/checkpoints/rollback", {"confirm": True})
    [row] = [row for row in garden.get("/twins")["twins"] if row["key"] == key]
    assert row["state"] == "asleep"
    again = garden.post(f"/twins/{key}/checkpoints/rollback", {"confirm": True})
    assert again["message"].endswith(" already.")


def test_refusals_say_what_there_is(garden: Garden) -> None:
    key = garden.new("newborn")
    refused = garden.post(f"/twins/{key}/checkpoints/rollback", {"confirm": True}, status=404)
    assert (refused["code"], refused["error"]) == ("no_such_checkpoint", "newborn has no checkpoint.")
    assert garden.post("/twins/nobody/checkpoints", {}, status=404)["code"] == "no_such_twin"
    garden.post(f"/twins/{key}/archive")
    assert garden.post(f"/twins/{key}/checkpoints", {}, status=409)["error"] == "newborn is archived."


def test_they_are_the_operators_alone(garden: Garden) -> None:
    key = garden.new("private")
    for method, path in (("GET", ""), ("POST", ""), ("POST", "/rollback")):
        answer = garden.daemon.request(
            method, f"/twins/{key}/checkpoints{path}", {} if method == "POST" else None
        )
        assert answer.status == 403, (method, path)


def test_killed_daemon_recovers_at_start(garden: Garden) -> None:
    """As a crash leaves it: the journal says what was under way, and the twin is in neither place."""
    key = garden.new("unlucky")
    daemon = garden.daemon
    folder = garden.folder(key)
    staging = folder.parent / ".hatch-20261121T094000Z-abcdef"
    staging.mkdir()
    base = staging.relative_to(daemon.home).as_posix()
    place = {"base": "twins", "path": key}
    moves = [
        {
            "target": place,
            "source": None,
            "aside": {"base": base, "path": "old"},
            "old": "",
            "new": "",
            "folder": True,
        },
        {
            "target": place,
            "source": {"base": base, "path": "new"},
            "aside": None,
            "old": "",
            "new": "",
            "folder": True,
        },
    ]
    journal = {"id": "x", "moves": moves, "made": [], "pruned": [], "dropped": [], "holds": []}
    shutil.copytree(folder, staging / "new")
    (staging / "new" / "soul.md").write_text("As then.")
    daemon.kill()
    (staging / "moving.json").write_bytes(orjson.dumps(journal))
    folder.rename(staging / "old")
    daemon.start()
    assert (folder / "soul.md").read_text() == "As then."
    assert not staging.exists()
    assert garden.get(f"/twins/{key}")["twin"]["soul"] == "As then."
