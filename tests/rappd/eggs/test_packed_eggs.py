"""Eggs that lie on this machine are called after what is inside; plan, hatching and history count the same files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from fixtures.running_daemon import RunningDaemon

from rappd.features.eggs.packing import egg_file_name


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("Gardener", "Gardener.egg"),
        ("a/b: c?", "a_b_ c_.egg"),
        ("..", "egg.egg"),
        ("ö" * 100, f"{'ö' * 80}.egg"),
    ],
)
def test_file_name_is_the_twins(name: str, file: str) -> None:
    assert egg_file_name(name) == file


def test_packed_egg_is_listed_under_its_name_and_counted_the_same_everywhere(
    fake_daemon: RunningDaemon, tmp_path: Path
) -> None:
    fake_daemon.cli("twins", "new", "Gardener")
    [twin] = fake_daemon.get("/twins", control=True).json()["twins"]
    fake_daemon.post(f"/twins/{twin['key']}/chat", {"user_input": "remember me"}, control=True)
    packed = fake_daemon.post("/eggs/pack", {"twin": twin["key"]}, control=True).json()["packed"]
    assert packed["left_out"] == [], "nothing but what rappd itself made empty"
    assert fake_daemon.get("/eggs/laid").status == 403
    [egg] = fake_daemon.get("/eggs/laid", control=True).json()["eggs"]
    assert (egg["file"], egg["path"], egg["size"]) == ("Gardener.egg", packed["path"], packed["size"])
    fetched = fake_daemon.get(f"/eggs/laid/{egg['folder']}/{Path(egg['path']).name}", control=True)
    assert len(fetched.body) == egg["size"]

    copy = shutil.copy(egg["path"], tmp_path / "Gardener.egg")
    home = {"RAPP_HOME": str(tmp_path / "elsewhere")}
    plan = json.loads(fake_daemon.cli("egg", "plan", copy, "--json", **home).stdout)["plan"]
    files = plan["create"]["count"]
    assert plan["create"]["roles"]["conversations"] == 1
    hatched = fake_daemon.cli("egg", "hatch", copy, "--yes", **home)
    assert f"Gardener hatched: {files} files." in hatched.stdout
    [row] = json.loads(fake_daemon.cli("egg", "hatchings", "--json", **home).stdout)["hatchings"]
    assert row["files"] == files
