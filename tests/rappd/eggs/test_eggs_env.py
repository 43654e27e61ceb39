"""The ``.env`` of an egg gives agents nothing until the operator approved exactly its bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fixtures.running_daemon import agent_source
from fixtures.twin_workspace import Place

from twins.eggs.readers.detect import open_egg

ENV = "WEATHER=sunny\nGREETING=hello\nPATH=/evil\n"
SHOW = agent_source(
    "Show", "import os, json\n        return json.dumps([os.environ.get('WEATHER'), os.environ['PATH']])"
)


def organism(desk: Place, into: Path, name: str = "Windy", env: str = ENV) -> tuple[str, Path]:
    key = desk.new(name)
    desk.give(key, "agents/show_agent.py", SHOW)
    desk.give(key, ".env", env)
    return key, desk.pack(key, into, form="organism")


def shown(place: Place, key: str) -> Any:
    return json.loads(place.runs(key, "Show"))


def test_env_of_an_egg_waits_until_approved(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key, egg = organism(desk, tmp_path / "windy.egg")
    plan = kitchen.post("/eggs/plan", {"path": str(egg)})["plan"]
    (variables,) = plan["variables"]
    assert variables == {
        "path": ".env", "names": ["WEATHER", "GREETING"], "never_taken": ["PATH"], "problem": "",
    }  # fmt: skip
    assert {one["path"] for one in plan["quarantine"]["files"]} == {".env", "agents/show_agent.py"}
    assert "sunny" not in json.dumps(plan)
    kitchen.hatch(egg)
    kitchen.post(f"/twins/{key}/agents/approve", {"filename": "show_agent.py"})
    weather, path = shown(kitchen, key)
    assert weather is None, "the agent runs, and sees nothing of the file"

    closed = kitchen.daemon.get(f"/twins/{key}/agents/source/.env")
    assert closed.status == 403 and "sunny" not in str(closed.body)
    assert kitchen.get(f"/twins/{key}/agents/source/.env")["source"] == ENV
    refused = kitchen.daemon.post(f"/twins/{key}/agents/approve", {"filename": ".env"})
    assert refused.status == 403
    told = kitchen.post(f"/twins/{key}/agents/approve", {"filename": ".env"})
    assert told["message"] == ".env is approved; agents have its variables from their next call on."
    weather, after = shown(kitchen, key)
    assert weather == "sunny" and after == path


def test_env_that_replaces_another_waits_too(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key, egg = organism(desk, tmp_path / "first.egg", "Calm")
    kitchen.hatch(egg)
    kitchen.give(key, ".env", "WEATHER=mine\n")
    kitchen.post(f"/twins/{key}/agents/approve", {"filename": "show_agent.py"})
    assert shown(kitchen, key)[0] is None, "a file that came in an egg waits, however it was changed"
    kitchen.post(f"/twins/{key}/agents/approve", {"filename": ".env"})
    assert shown(kitchen, key)[0] == "mine", "a file of the owner's own is in force"
    desk.give(key, ".env", "WEATHER=stormy\n")
    second = desk.pack(key, tmp_path / "second.egg", form="organism")
    assert kitchen.hatch(second, overwrite=["env"])["quarantine"]["count"] == 1
    assert (kitchen.twin(key) / ".env").read_text() == "WEATHER=stormy\n"
    assert shown(kitchen, key)[0] is None


def test_env_that_is_held_is_neither_packed_nor_forked(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key, egg = organism(desk, tmp_path / "third.egg", "Misty")
    kitchen.hatch(egg)
    done = kitchen.post("/eggs/pack", {"twin": key, "form": "organism", "into": str(tmp_path / "y.egg")})
    left = {one["path"]: one["why"] for one in done["packed"]["left_out"]}
    assert "quarantined" in left[".env"]
    with open_egg(tmp_path / "y.egg") as opened:
        assert not [part for part in opened.parts if part.role == "env"]
    fork = kitchen.post(f"/twins/{key}/fork", {"name": "Fog"})["key"]
    assert not (kitchen.twin(fork) / ".env").exists()


def test_plan_and_inspect_show_names_without_values(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    _, egg = organism(desk, tmp_path / "fourth.egg", "Hazy")
    for command in ("plan", "inspect"):
        told = kitchen.daemon.cli("egg", command, str(egg)).stdout
        assert ".env sets WEATHER, GREETING" in told and "sunny" not in told
        assert "PATH" in told and "never taken" in told
