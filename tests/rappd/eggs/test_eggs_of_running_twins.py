"""Eggs of twins that are running, or talking: they sleep meanwhile, or answer first; and what fails then is told."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from fixtures.loopback_server import says
from fixtures.running_daemon import on
from fixtures.twin_workspace import News, Place


def test_running_twin_restarts_as_the_egg_left_it(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Awake")
    kitchen.hatch(desk.pack(key, tmp_path / "1.egg"))
    port = kitchen.post(f"/twins/{key}/boot")["port"]
    on(port, "POST", "/chat", {"user_input": "hello"})
    desk.soul(key, "# Awake\n\nYou have changed.\n")
    second = desk.pack(key, tmp_path / "2.egg")
    with ThreadPoolExecutor(4) as pool:
        turns = [pool.submit(on, port, "POST", "/chat", {"user_input": "x"}) for _ in range(6)]
        done = kitchen.hatch(second, overwrite=["soul"])
        for turn in turns:
            with suppress(OSError, http.client.HTTPException):  # cut off by the sleep, as by a stop
                turn.result()
    assert done["replace"]["roles"] == {"soul": 1}
    assert kitchen.get(f"/twins/{key}")["twin"]["state"] == "awake"
    kitchen.model.will(says("here"))
    assert on(port, "POST", "/chat", {"user_input": "hello"}).json()["response"] == "here"
    assert "You have changed." in kitchen.model.system()
    assert kitchen.verified()


def test_twin_hatching_its_own_egg_answers_first(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Selfish")
    kitchen.hatch(desk.pack(key, tmp_path / "1.egg"))
    desk.give(key, ".brainstem_data/notes.txt", "watered")
    second = desk.pack(key, tmp_path / "2.egg")
    port = kitchen.post(f"/twins/{key}/boot")["port"]
    told = kitchen.runs(key, "HatchEgg", egg_path=str(second))
    assert "Selfish hatches as soon as it has answered." in told
    second.unlink()  # what was planned waits in the home
    kitchen.daemon.wait_for((kitchen.twin(key) / ".brainstem_data" / "notes.txt").exists)
    kitchen.daemon.wait_for(lambda: kitchen.get(f"/twins/{key}")["twin"]["port"] == port)
    assert kitchen.get("/eggs/hatchings")["hatchings"][0]["name"] == "Selfish"
    assert kitchen.says_to(key, "Are you there?", "I am.")["response"] == "I am."
    third = desk.pack(desk.new("Newcomer"), tmp_path / "3.egg")
    assert "Newcomer hatched: " in kitchen.runs(key, "HatchEgg", egg_path=str(third)), "nobody rests for it"


def test_a_twin_that_takes_its_own_hatching_back_answers_first(
    two: tuple[Place, Place], tmp_path: Path
) -> None:
    desk, kitchen = two
    key = desk.new("Undone")
    kitchen.hatch(desk.pack(key, tmp_path / "1.egg"))
    desk.give(key, ".brainstem_data/notes.txt", "watered")
    second = kitchen.hatch(desk.pack(key, tmp_path / "2.egg"))["receipt"]
    port = kitchen.post(f"/twins/{key}/boot")["port"]
    notes = kitchen.twin(key) / ".brainstem_data" / "notes.txt"
    assert notes.exists()
    told = kitchen.runs(key, "HatchEgg", take_back=second)
    assert told == f"{second} is taken back as soon as the twin has answered."
    kitchen.daemon.wait_for(lambda: not notes.exists())
    kitchen.daemon.wait_for(lambda: kitchen.get(f"/twins/{key}")["twin"]["port"] == port)
    rows = {row["id"]: row for row in kitchen.get("/eggs/hatchings")["hatchings"]}
    assert rows[second]["rolled_back_at"]
    assert "notice" not in kitchen.says_to(key, "Are you there?"), "there is nothing more to tell"


def test_hatchings_of_one_second_are_listed_in_order(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    names = [f"Quick {number}" for number in range(8)]
    eggs = [desk.pack(desk.new(name), tmp_path / f"{name}.egg") for name in names]
    for egg in eggs:
        kitchen.hatch(egg)
    listed = [row["name"] for row in kitchen.get("/eggs/hatchings")["hatchings"][: len(names)]]
    assert listed == names[::-1]


def test_a_hatching_is_taken_back_in_conversation(make_place: Callable[..., Place], tmp_path: Path) -> None:
    desk, home = make_place("desk"), make_place("home")
    assert home.runs("", "HatchEgg", take_back="latest") == (
        "Nothing was hatched here that could be taken back."
    )
    key = desk.new("Fleeting")
    receipt = home.hatch(desk.pack(key, tmp_path / "1.egg"))["receipt"]
    refused = home.runs("", "HatchEgg", take_back=receipt, as_operator=False)
    assert home.twin(key).exists() and "taken back" not in refused
    told = home.runs("", "HatchEgg", take_back="latest")
    assert re.fullmatch(r"Fleeting is taken back: 0 files restored, \d+ removed\.", told), told
    assert not home.twin(key).exists()
    assert home.runs("", "HatchEgg", take_back=receipt) == "Fleeting was taken back before."
    assert home.runs("", "HatchEgg", take_back="20000101T000000Z-000000").startswith("Error: ")


def test_late_failure_is_shown_in_page_and_told_once(two: tuple[Place, Place], tmp_path: Path) -> None:
    desk, kitchen = two
    key = desk.new("Promised")
    first = kitchen.hatch(desk.pack(key, tmp_path / "1.egg"))["receipt"]
    kitchen.soul(key, "# My own\n")
    news = News(kitchen.daemon)
    assert "is taken back as soon as" in kitchen.runs(key, "HatchEgg", take_back=first)
    said = f"The rollback of {first} was not done after Promised had answered: "
    seen = news.until(lambda one: one["type"] == "failed")
    assert seen["message"].startswith(said) and "changed since Promised hatched" in seen["message"]
    assert f"`rappd egg rollback {first} --even-if-changed`" in seen["do"]

    stranger = kitchen.daemon.post("/chat", {"user_input": "hello"})
    assert stranger.status == 200 and "notice" not in stranger.json(), "only the operator asked for it"
    assert "notice" not in kitchen.says_to("", "hello"), "news are no part of an answer"
    (told,) = kitchen.daemon.post("/notices/tell", control=True).json()["told"]
    assert told.startswith(said)
    assert kitchen.daemon.post("/notices/tell", control=True).json()["told"] == [], "once is enough"
    assert "My own" in (kitchen.twin(key) / "soul.md").read_text()
