"""The egg that was looked at and approved is the one that hatches; copies that wait are kept and removed well."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from fixtures.running_daemon import RunningDaemon
from fixtures.twin_workspace import Place, lies, without_waiting


def test_changed_plan_is_refused_after_approval(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Planned")
    egg = desk.pack(key, tmp_path / "x.egg")
    kitchen.hatch(egg)
    desk.soul(key, "# Planned\n\nAnother soul.\n")
    laid = kitchen.lay_down(desk.pack(key, tmp_path / "y.egg").read_bytes(), "y.egg")
    plan = kitchen.post("/eggs/plan", {"id": laid["id"], "overwrite": ["soul"]})["plan"]
    assert [one["path"] for one in plan["replace"]["files"]] == ["soul.md"]
    kitchen.give(key, "soul.md", "# My own\n")
    before = lies(kitchen.twin(key))
    body = {"id": laid["id"], "overwrite": ["soul"], "approved": plan["digest"]}
    assert kitchen.refused("/eggs/hatch", body) == (409, "plan_changed")
    assert lies(kitchen.twin(key)) == before
    plan = kitchen.post("/eggs/plan", body)["plan"]
    kitchen.post("/eggs/hatch", {**body, "approved": plan["digest"]})
    assert "Another soul." in (kitchen.twin(key) / "soul.md").read_text()
    assert kitchen.refused("/eggs/hatch", body) == (404, "not_found"), "a hatched egg waits no more"


def test_hatched_bytes_are_the_inspected_ones(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key, other = desk.new("Looked at"), desk.new("Slipped in")
    egg = desk.pack(key, tmp_path / "x.egg")
    planned = kitchen.post("/eggs/plan", {"path": str(egg)})
    desk.pack(other, egg, overwrite=True)
    approved = planned["plan"]["digest"]
    assert kitchen.refused("/eggs/hatch", {"path": str(egg), "approved": approved}) == (409, "plan_changed")
    assert not kitchen.twin(other).exists()
    kitchen.post("/eggs/hatch", {"id": planned["id"], "approved": approved})
    assert kitchen.twin(key).exists()
    assert not kitchen.twin(other).exists()


def test_an_egg_that_waits_for_more_than_a_day_goes(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    egg = desk.pack(desk.new("Patient"), tmp_path / "x.egg")
    ident = kitchen.lay_down(egg.read_bytes())["id"]
    folder = kitchen.home / "eggs" / ".waiting" / ident
    old = time.time() - 25 * 3600
    for path in (folder / "an.egg", folder):
        os.utime(path, (old, old))
    kitchen.refused("/eggs", b"no egg")
    assert ident not in kitchen.waiting()
    assert kitchen.ask("DELETE", f"/eggs/{ident}").status == 404


def test_old_eggs_and_parts_of_a_killed_process_go_though_no_other_comes(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon("attic", LLM_FAKE="1")
    waiting = daemon.home / "eggs" / ".waiting"
    waiting.mkdir(parents=True)
    old = time.time() - 25 * 3600
    for name, at in (("opened.part", old), ("new.part", time.time())):
        (waiting / name).write_bytes(b"what was sealed")
        os.utime(waiting / name, (at, at))
    daemon.start()
    daemon.wait_for(lambda: not (waiting / "opened.part").exists())
    assert (waiting / "new.part").exists(), "positive control"


@pytest.mark.parametrize(
    "name", ["../../../x.egg", "/etc/x.egg", "a\x00b\n.egg", "..", "", "é" * 300, "x.egg.sig", " .", "a\\b"]
)
def test_an_egg_waits_under_its_name_and_inside_its_folder(two: tuple[Place, Place], name: str) -> None:
    desk, kitchen = two
    path = Path(desk.post("/eggs/pack", {"twin": desk.new("Named")})["packed"]["path"])
    before = without_waiting(kitchen.home)
    laid = kitchen.lay_down(path.read_bytes(), quote(name, safe=""))
    (file,) = (kitchen.home / "eggs" / ".waiting" / laid["id"]).iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert without_waiting(kitchen.home) == before
    assert kitchen.post("/eggs/plan", {"id": laid["id"]})["plan"]["egg"]["file"] == file.name
    assert kitchen.ask("DELETE", f"/eggs/{laid['id']}").status == 200
    assert laid["id"] not in kitchen.waiting()


def test_an_egg_that_two_tabs_look_at_stays_until_both_are_done(two: tuple[Place, Place]) -> None:
    desk, kitchen = two
    path = Path(desk.post("/eggs/pack", {"twin": desk.new("Shared")})["packed"]["path"])
    first, second = (kitchen.lay_down(path.read_bytes(), "shared.egg") for _ in range(2))
    ident = first["id"]
    assert second["id"] == ident
    assert kitchen.ask("DELETE", f"/eggs/{ident}").status == 200
    assert kitchen.post("/eggs/plan", {"id": ident})["plan"]["egg"]["file"] == "shared.egg"
    kitchen.post("/eggs/hatch", {"id": ident})
    assert ident not in kitchen.waiting()


def test_a_signature_beside_a_file_counts_for_the_daemon_too(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    egg = desk.pack(desk.new("Strict"), tmp_path / "x.egg", form="rapp1-organism")
    assert (tmp_path / "x.egg.sig").exists()
    assert (
        kitchen.post("/eggs/plan", {"path": str(egg)})["plan"]["seal"]["signer"]
        == desk.get("/eggs/signers")["own"]
    )
    (tmp_path / "x.egg.sig").unlink()
    assert kitchen.post("/eggs/plan", {"path": str(egg)})["plan"]["seal"]["signer"] == ""


def test_egg_signature_counts_for_same_bytes_only(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    egg = desk.pack(desk.new("Strict"), tmp_path / "x.egg", form="rapp1-organism").read_bytes()
    beside = quote((tmp_path / "x.egg.sig").read_bytes())
    laid = kitchen.lay_down(egg, f"x.egg&signature={beside}")
    own = desk.get("/eggs/signers")["own"]
    assert laid["plan"]["seal"]["signer"] == laid["egg"]["signer"] == own
    again = {"id": laid["id"], "overwrite": ["soul"]}
    assert kitchen.post("/eggs/plan", again)["plan"]["seal"]["signer"] == own
    assert kitchen.lay_down(egg, "x.egg")["plan"]["seal"]["signer"] == "", "this time it came alone"
    other = desk.pack(desk.new("Other"), tmp_path / "y.egg", form="rapp1-organism").read_bytes()
    for content, signature in ((other, beside), (egg, "{}"), (egg, beside[:-40])):
        assert kitchen.refused(f"/eggs?name=x.egg&signature={signature}", content) == (400, "bad_egg")
        assert hashlib.sha256(content).hexdigest() not in kitchen.waiting(), "nothing is kept"
