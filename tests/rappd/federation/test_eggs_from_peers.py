"""What a peer may do by sending eggs: have them wait, in one place, and no more than twenty."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.rappd.federation.conftest import House
from tests.rappd.federation.plain_machine import PlainMachine, Reply

OCTETS = "application/octet-stream"


@pytest.fixture(scope="module")
def egg(house: House) -> bytes:
    assert house.daemon.cli("twins", "new", "Rose").returncode == 0
    path = house.folder / "rose.egg"
    packed = house.daemon.cli("egg", "pack", "Rose", "--output", str(path))
    assert packed.returncode == 0, packed.stderr
    return path.read_bytes()


@pytest.fixture(scope="module")
def friend(house: House) -> PlainMachine:
    return house.peer("friend", whose="friend")


def sends(friend: PlainMachine, egg: bytes, name: str) -> Reply:
    return friend.request("POST", "/eggs", egg, headers={"Content-Type": OCTETS, "X-Rappd-Name": name})


def arrived(house: House) -> list[dict[str, str]]:
    found: list[dict[str, str]] = house.owner("GET", "/eggs/arrived")[1]["arrived"]
    return found


def files(house: House) -> set[Path]:
    folder = house.daemon.home / "eggs" / ".arrived"
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "name",
    ["..%2F..%2F..%2Fsoul.md", "%2Fetc%2Fpasswd", "arrived.json", "..", "a%00b", "%0A%1B[2J", "x" * 500],
)
def test_no_name_leads_an_egg_elsewhere(house: House, friend: PlainMachine, egg: bytes, name: str) -> None:
    got = sends(friend, egg, name)
    assert got.status == 200, got.body
    (row,) = arrived(house)
    assert Path(row["path"]).read_bytes() == egg, "the egg itself waits there"
    assert {path.parts[0] for path in files(house)} == {row["id"]}
    assert row["name"].isprintable()
    assert house.owner("DELETE", f"/eggs/arrived/{row['id']}")[0] == 200
    assert files(house) == set()


def test_the_twenty_first_is_refused_and_not_kept(house: House, friend: PlainMachine, egg: bytes) -> None:
    assert sends(friend, egg, "first.egg").status == 200
    (row,) = arrived(house)
    waiting = Path(row["path"]).parent
    for number in range(19):  # as if they had come in the days before
        other = waiting.with_name(f"{number:064x}")
        other.mkdir()
        (other / "rose.egg").write_bytes(egg)
        note = {**row, "id": other.name, "path": str(other / "rose.egg")}
        (other / ".arrived.json").write_text(json.dumps(note))
    before = files(house)
    refused = sends(friend, egg + b" ", "one-more.egg")
    assert (refused.status, refused.json["code"]) == (403, "refused")
    assert files(house) == before
    assert sends(house.peer("neighbour", whose="friend"), egg + b" ", "theirs.egg").json["code"] != "refused"
