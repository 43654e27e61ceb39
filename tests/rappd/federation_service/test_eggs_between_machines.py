"""Eggs packed for a peer, sent to it, staged there, and hatched only by its owner."""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fixtures.machines import Machine, pair


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Machine, Machine, Machine]]:
    folder = tmp_path_factory.mktemp("eggs")
    desk, pi, shed = (
        Machine(folder / name, name, LLM_FAKE="1", RAPPD_NEARBY="off") for name in ("desk", "pi", "shed")
    )
    try:
        for machine in (desk, pi, shed):
            machine.start()
        pair(desk, pi)
        pair(desk, shed, "friend")
        yield desk, pi, shed
    finally:
        for machine in (desk, pi, shed):
            machine.stop()


def a_twin(desk: Machine, name: str) -> None:
    desk.owner("POST", "/twins", {"name": name, "text": f"You are {name}."})


def test_an_egg_for_a_peer_opens_there_and_nowhere_else(
    machines: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    desk, pi, shed = machines
    a_twin(desk, "Rose")
    packed = desk.owner(
        "POST", "/eggs/pack", {"twin": "Rose", "to": "pi", "into": str(tmp_path / "rose.egg")}
    )
    sealed = Path(packed["packed"]["path"])
    assert sealed.name == "rose.egg.age"
    assert not (tmp_path / "rose.egg").exists()
    assert b"Rose" not in sealed.read_bytes()
    refused = shed.owner("POST", "/eggs/plan", {"path": str(sealed)}, status=403)
    assert "another machine" in refused["error"]
    assert desk.request("POST", "/eggs/plan", {"path": str(sealed)}, control=True).status == 403
    assert pi.owner("POST", "/eggs/plan", {"path": str(sealed)})["plan"]["egg"]["name"] == "Rose"
    hatched = pi.owner("POST", "/eggs/hatch", {"path": str(sealed)})["hatched"]
    life = json.loads((pi.home / "twins" / hatched["key"] / "bonds.json").read_text())
    handed = [event["note"] for event in life["events"] if event["kind"] == "launch"]
    assert handed == [f"packed by desk {desk.fingerprint} for pi {pi.fingerprint}"]


@pytest.mark.skipif(sys.platform != "linux", reason="inotify")
def test_egg_for_a_peer_lies_sealed_alone_where_it_was_wanted(
    machines: tuple[Machine, Machine, Machine], tmp_path: Path
) -> None:
    """The place may be a stick, or a folder that a cloud copies from: nothing else is ever written there."""
    desk = machines[0]
    a_twin(desk, "Iris")
    stick = tmp_path / "stick"
    stick.mkdir()
    watch = watching(stick)
    order = {"twin": "Iris", "to": "pi", "into": str(stick / "iris.egg")}
    desk.owner("POST", "/eggs/pack", order)
    (stick / "control").write_text("seen")
    names = watch()
    assert "control" in names, "positive control"
    assert {name for name in names if not name.startswith(".iris.egg.age.")} == {"iris.egg.age", "control"}
    assert not list((desk.home / "eggs" / ".waiting").glob("*"))
    before = (stick / "iris.egg.age").read_bytes()
    assert "exists already" in desk.owner("POST", "/eggs/pack", order, status=409)["error"]
    assert (stick / "iris.egg.age").read_bytes() == before


def watching(folder: Path) -> Callable[[], set[str]]:
    """Names that appear in a folder from now on (inotify); call it for those up to now."""
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    assert libc.inotify_add_watch(handle, os.fsencode(folder), 0x100 | 0x80) > 0  # IN_CREATE, IN_MOVED_TO

    def names() -> set[str]:
        events, found = os.read(handle, 1 << 16), set()
        os.close(handle)
        while events:
            (length,) = struct.unpack_from("I", events, 12)
            found.add(events[16 : 16 + length].rstrip(b"\0").decode())
            events = events[16 + length :]
        return found

    return names


def test_a_sent_egg_waits_for_its_owner(machines: tuple[Machine, Machine, Machine]) -> None:
    desk, pi, _ = machines
    a_twin(desk, "Ivy")
    egg = desk.owner("POST", "/eggs/pack", {"twin": "Ivy"})["packed"]["path"]
    before = pi.owner("GET", "/twins")["twins"]
    sent = desk.owner("POST", "/eggs/send", {"path": egg, "peer": "pi"})["sent"]
    assert sent["peer"] == "pi"
    (row,) = pi.owner("GET", "/eggs/arrived")["arrived"]
    assert row["from"] == "desk"
    assert row["id"] == sent["id"]
    assert pi.owner("GET", "/twins")["twins"] == before
    hatched = pi.owner("POST", "/eggs/hatch", {"path": row["path"]})["hatched"]
    assert hatched["name"] == "Ivy"
    assert [one["name"] for one in pi.owner("GET", "/twins")["twins"]] == ["Ivy", "Rose"] or before == []
    assert pi.owner("GET", "/eggs/arrived")["arrived"] == [], "it was hatched"
    desk.owner("POST", "/eggs/send", {"path": egg, "peer": "pi"})
    pi.owner("DELETE", f"/eggs/arrived/{row['id']}")
    assert pi.owner("GET", "/eggs/arrived")["arrived"] == []


def test_a_friend_may_send_eggs_and_nothing_else(machines: tuple[Machine, Machine, Machine]) -> None:
    desk, _, shed = machines
    a_twin(shed, "Fern")
    egg = shed.owner("POST", "/eggs/pack", {"twin": "Fern"})["packed"]["path"]
    shed.owner("POST", "/eggs/send", {"path": egg, "peer": "desk"})
    assert [row["from"] for row in desk.owner("GET", "/eggs/arrived")["arrived"]] == ["shed"]
    assert shed.call("desk", text="hello")["status"] == 403
    desk.owner("POST", "/peers/shed/scopes", {"scopes": []})
    answer = shed.request("POST", "/eggs/send", {"path": egg, "peer": "desk"}, control=True)
    assert answer.status != 200
    assert len(desk.owner("GET", "/eggs/arrived")["arrived"]) == 1


def test_what_is_no_egg_is_not_kept(machines: tuple[Machine, Machine, Machine], tmp_path: Path) -> None:
    desk, pi, _ = machines
    (tmp_path / "poem.egg").write_text("Roses are red.")
    before = pi.owner("GET", "/eggs/arrived")["arrived"]
    answer = desk.request(
        "POST", "/eggs/send", {"path": str(tmp_path / "poem.egg"), "peer": "pi"}, control=True
    )
    assert answer.status >= 400
    assert pi.owner("GET", "/eggs/arrived")["arrived"] == before
    assert list((pi.home / "eggs" / ".arrived").glob("*.part")) == []
