"""What a peer may do by sending eggs: have them wait, in one place, and no more than twenty."""

from __future__ import annotations

import http.client
import json
import uuid
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
    assert (refused.status, refused.json["code"]) == (429, "too_many")
    assert files(house) == before
    asked = friend.request("GET", f"/eggs/{uuid.uuid4()}")
    assert (asked.status, asked.json["code"]) == (429, "too_many"), "it is told before it is sent"
    assert sends(house.peer("neighbour", whose="friend"), egg + b" ", "theirs.egg").json["code"] != "too_many"
    for row in arrived(house):
        assert house.owner("DELETE", f"/eggs/arrived/{row['id']}")[0] == 200


def test_those_that_are_coming_in_count_too(house: House, egg: bytes) -> None:
    friend = house.peer("hasty", whose="friend")
    began = [begun(friend, egg, f"{number}.egg") for number in range(20)]
    house.daemon.wait_for(lambda: len(parts(house)) == 20, 30, "twenty to come in")
    refused = sends(friend, egg, "one-more.egg")
    assert (refused.status, refused.json["code"]) == (429, "too_many")
    assert sends(house.peer("calm", whose="friend"), egg, "theirs.egg").status == 200
    for connection in began[1:]:
        connection.close()
    house.daemon.wait_for(lambda: len(parts(house)) == 1, 30, "the others to be given up")
    assert sends(friend, egg, "again.egg").status == 200
    began[0].send(egg[-1:])
    assert began[0].getresponse().status == 200
    began[0].close()
    house.daemon.wait_for(lambda: parts(house) == [], 30, "nothing to be half here")
    (row,) = arrived(house)  # all of them were the same egg
    assert house.owner("DELETE", f"/eggs/arrived/{row['id']}")[0] == 200


def test_the_same_egg_sent_again_takes_the_place_of_one_whose_line_is_dead(house: House, egg: bytes) -> None:
    friend, id = house.peer("patient", whose="friend"), str(uuid.uuid4())
    assert friend.request("GET", f"/eggs/{id}").status == 404
    dead = begun(friend, egg, "rose.egg", id)
    house.daemon.wait_for(lambda: len(parts(house)) == 1, 30, "it to come in")
    headers = {"Content-Type": OCTETS, "X-Rappd-Name": "rose.egg", "X-Rappd-Id": id}
    first = friend.request("POST", "/eggs", egg, headers=headers)
    assert first.status == 200
    dead.close()
    (row,) = arrived(house)
    assert friend.request("GET", f"/eggs/{id.upper()}").json == first.json
    assert house.owner("DELETE", f"/eggs/arrived/{row['id']}")[0] == 200
    again = friend.request("POST", "/eggs", egg, headers=headers)
    assert (again.status, again.json) == (200, first.json)
    assert arrived(house) == [], "what its owner threw away does not come back"
    other = house.peer("another", whose="friend")
    assert other.request("GET", f"/eggs/{id}").status == 404, "nobody is told of another's"


def begun(friend: PlainMachine, egg: bytes, name: str, id: str = "") -> http.client.HTTPSConnection:
    """An upload of which the last byte does not come."""
    connection = friend.connect()
    connection.putrequest("POST", "/eggs")
    headers = {"Content-Type": OCTETS, "X-Rappd-Name": name, "Content-Length": str(len(egg))}
    for key, value in {**headers, **({"X-Rappd-Id": id} if id else {})}.items():
        connection.putheader(key, value)
    connection.endheaders(egg[:-1])
    return connection


def parts(house: House) -> list[Path]:
    return list((house.daemon.home / "eggs" / ".arrived").glob("*.part"))
