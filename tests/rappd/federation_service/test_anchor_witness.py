"""Machines of one owner keep each other's anchors: what the account itself can rewrite, they contradict."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fixtures.forged_log import FORGERIES, forge
from fixtures.machines import Machine, acquaint, pair

from envelopes.identity.anchor import sign_anchor
from envelopes.identity.keys import IdentityKey
from rappd.daemon.home import Home
from rappd.store.anchor_signing import Anchorer


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Callable[[str], Machine]]:
    made: list[Machine] = []

    def make(name: str) -> Machine:
        one = Machine(tmp_path / name, name, LLM_FAKE="1")
        made.append(one)
        return one

    yield make
    for one in made:
        one.stop()


@pytest.fixture
def desk(machine: Callable[[str], Machine]) -> Machine:
    return machine("desk").start()


@pytest.fixture
def shed(machine: Callable[[str], Machine]) -> Machine:
    return machine("shed").start()


def kept(of: Machine, name: str) -> dict[str, Any]:
    rows = of.owner("GET", "/anchors")["kept"]
    found: dict[str, Any] = next((row for row in rows if row["name"] == name), {"anchors": 0, "events": 0})
    return found


def verified(machine: Machine, *more: str) -> tuple[int, str]:
    done = machine.cli("threads", "verify", *more)
    return done.returncode, " ".join(done.stdout.split())


def newest(home: Path) -> dict[str, Any]:
    with closing(sqlite3.connect(home / "anchors.db")) as db:
        found = db.execute("SELECT body FROM anchors ORDER BY counter DESC LIMIT 1").fetchone()
    body: dict[str, Any] = json.loads(found[0])
    return body


def talked(desk: Machine, shed: Machine) -> None:
    """Both are of one owner, the desk talked and stopped, and the shed has its last anchor."""
    acquaint(desk, shed)
    for text in ("first", "second", "first again"):
        desk.talk(text, session_id=text.split()[0])
    desk.stop()
    assert kept(shed, "desk")["events"] >= 12, "handed at the clean stop"


def sign_again(machine: Machine) -> None:
    """Signs what lies in the database as if nothing had been signed before: the thief has the identity key."""
    home = Home(machine.home)
    (machine.home / "anchors.db").unlink()
    forge(home.database, lambda db: db.execute("UPDATE anchored SET counter = 0, events = 0"))
    anchorer = Anchorer(home.database, home.identity())
    anchorer.open_log()
    anchorer.advance(closed=True)
    anchorer.close()


def test_verify_names_the_witnesses_that_agree(desk: Machine, shed: Machine) -> None:
    talked(desk, shed)
    desk.start()
    desk.knows("shed")
    code, text = verified(desk, "--peers")
    assert code == 0
    assert "witnesses: shed." in text
    report = json.loads(desk.cli("threads", "verify", "--peers", "--json").stdout)["verify"]
    assert [row["name"] for row in report["anchor"]["witnesses"]] == ["shed"]
    shown = shed.cli("threads", "witness")
    assert shown.returncode == 0
    assert "desk" in shown.stdout


@pytest.mark.parametrize("name", FORGERIES)
def test_witness_contradicts_a_forged_log_signed_again(desk: Machine, shed: Machine, name: str) -> None:
    talked(desk, shed)
    forge(desk.home / "rappd.db", FORGERIES[name][0])
    sign_again(desk)
    assert verified(desk)[0] == 0, "the machine alone cannot tell"
    desk.start()
    desk.knows("shed")
    code, text = verified(desk, "--peers")
    if name == "invent_event":  # what was signed is still there, the numbers of the anchors are not
        assert "keeps another anchor" in text
    else:
        assert "shed keeps anchor" in text
    assert code == 1
    shed.wait_for(lambda: kept(shed, "desk").get("faults"), what="the shed to notice")
    shed.wait_for_log("security: desk sent anchor")
    told = shed.cli("threads", "witness")
    assert told.returncode == 1
    assert "desk: anchor" in told.stdout
    assert shed.cli("threads", "witness", "--forget", "desk").returncode == 0
    assert not kept(shed, "desk").get("faults")


def test_witness_contradicts_an_older_home(desk: Machine, shed: Machine, tmp_path: Path) -> None:
    desk.talk("long ago", session_id="first")
    desk.stop()
    shutil.copytree(desk.home, tmp_path / "older")
    desk.start()
    talked(desk, shed)
    keys = tmp_path / "trust.db"
    shutil.copy(desk.home / "rappd.db", keys)
    with closing(sqlite3.connect(keys)) as db:
        peers = db.execute("SELECT * FROM peers").fetchall()
    for name in ("rappd.db", "anchors.db"):
        shutil.copy(tmp_path / "older" / name, desk.home / name)
    with closing(
        sqlite3.connect(desk.home / "rappd.db")
    ) as db:  # the thief keeps the peers, to be unsuspicious
        db.executemany(f"INSERT INTO peers VALUES({','.join('?' * len(peers[0]))})", peers)
        db.commit()
    assert verified(desk)[0] == 0, "database and anchors are of one moment"
    desk.start()
    desk.knows("shed")
    code, text = verified(desk, "--peers")
    assert code == 1
    assert "are gone from the end (shed keeps anchor" in text


def test_friends_get_and_keep_no_anchors(desk: Machine, shed: Machine) -> None:
    pair(desk, shed, "friend")
    desk.wait_for(lambda: desk.row("shed")["presence"] == "here", what="the shed")
    desk.talk("hello")
    desk.stop()
    assert shed.owner("GET", "/anchors")["kept"] == []
    desk.start()
    assert "No machine of yours is paired" in verified(desk, "--peers")[1]


def test_witness_that_is_away_is_named(desk: Machine, shed: Machine) -> None:
    talked(desk, shed)
    shed.stop()
    desk.start()
    code, text = verified(desk, "--peers")
    assert code == 0
    assert "shed is away" in text
    assert "witnesses:" not in text


def test_anchor_with_a_smaller_number_replaces_nothing(desk: Machine, shed: Machine) -> None:
    """A fork signed with the right key: same number, another root."""
    talked(desk, shed)
    before = kept(shed, "desk")
    key: IdentityKey = Home(desk.home).identity()
    last = newest(desk.home)
    with closing(sqlite3.connect(desk.home / "anchors.db")) as db:
        forged = sign_anchor(
            key, previous=None, counter=before["counter"], at=last["at"] + 1, threads=1, events=1, root=bytes(32)
        )  # fmt: skip
        db.execute("DELETE FROM anchors")
        db.execute(
            "INSERT INTO anchors VALUES(?, '', ?)", (forged.counter, json.dumps(forged.to_json()).encode())
        )
        db.commit()
    desk.start()
    desk.wait_for(lambda: desk.row("shed")["presence"] == "here", what="the shed")
    desk.wait_for_log("was changed")  # the list of threads does not belong to it, so nobody gets it
    after = kept(shed, "desk")
    assert (after["counter"], after["events"]) == (before["counter"], before["events"])
