"""Eggs that a peer sends wait, in one place, and no more than twenty."""

from __future__ import annotations

import http.client
import json
import uuid
from pathlib import Path

import pytest

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine, Reply

OCTETS = "application/octet-stream"


@pytest.fixture(scope="module")
def egg(node: Node) -> bytes:
    assert node.daemon.cli("twins", "new", "Rose").returncode == 0
    path = node.folder / "rose.egg"
    packed = node.daemon.cli("egg", "pack", "Rose", "--output", str(path))
    assert packed.returncode == 0, packed.stderr
    return path.read_bytes()


@pytest.fixture(scope="module")
def friend(node: Node) -> PlainMachine:
    return node.peer("friend", whose="friend")


def sends(friend: PlainMachine, egg: bytes, name: str) -> Reply:
    return friend.request("POST", "/eggs", egg, headers={"Content-Type": OCTETS, "X-Rappd-Name": name})


def arrived(node: Node) -> list[dict[str, str]]:
    found: list[dict[str, str]] = node.owner("GET", "/eggs/arrived")[1]["arrived"]
    return found


def files(node: Node) -> set[Path]:
    folder = node.daemon.home / "eggs" / ".arrived"
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    "name",
    ["..%2F..%2F..%2Fsoul.md", "%2Fetc%2Fpasswd", "arrived.json", "..", "a%00b", "%0A%1B[2J", "x" * 500],
)
def test_no_name_leads_an_egg_elsewhere(node: Node, friend: PlainMachine, egg: bytes, name: str) -> None:
    got = sends(friend, egg, name)
    assert got.status == 200, got.body
    (row,) = arrived(node)
    assert Path(row["path"]).read_bytes() == egg, "the egg itself waits there"
    assert {path.parts[0] for path in files(node)} == {row["id"]}
    assert row["name"].isprintable()
    assert node.owner("DELETE", f"/eggs/arrived/{row['id']}")[0] == 200
    assert files(node) == set()


def test_the_twenty_first_is_refused_and_not_kept(node: Node, friend: PlainMachine, egg: bytes) -> None:
    assert sends(friend, egg, "first.egg").status == 200
    (row,) = arrived(node)
    waiting = Path(row["path"]).parent
    for number in range(19):  # as if they had come in the days before
        other = waiting.with_name(f"{number:064x}")
        other.mkdir()
        (other / "rose.egg").write_bytes(egg)
        note = {**row, "id": other.name, "path": str(other / "rose.egg")}
        (other / ".arrived.json").write_text(json.dumps(note))
    before = files(node)
    refused = sends(friend, egg + b" ", "one-more.egg")
    assert (refused.status, refused.json["code"]) == (429, "too_many")
    assert files(node) == before
    asked = friend.request("GET", f"/eggs/{uuid.uuid4()}")
    assert (asked.status, asked.json["code"]) == (429, "too_many"), "it is told before it is sent"
    assert sends(node.peer("neighbour", whose="friend"), egg + b" ", "theirs.egg").json["code"] != "too_many"
    for row in arrived(node):
        assert node.owner("DELETE", f"/eggs/arrived/{row['id']}")[0] == 200


def test_those_that_are_coming_in_count_too(node: Node, egg: bytes) -> None:
    friend = node.peer("hasty", whose="friend")
    began = [begun(friend, egg, f"{number}.egg") for number in range(20)]
    node.daemon.wait_for(lambda: len(parts(node)) == 20, what="twenty to come in")
    refused = sends(friend, egg, "one-more.egg")
    assert (refused.status, refused.json["code"]) == (429, "too_many")
    assert sends(node.peer("calm", whose="friend"), egg, "theirs.egg").status == 200
    for connection in began[1:]:
        connection.close()
    node.daemon.wait_for(lambda: len(parts(node)) == 1, what="the others to be given up")
    assert sends(friend, egg, "again.egg").status == 200
    began[0].send(egg[-1:])
    assert began[0].getresponse().status == 200
    began[0].close()
    node.daemon.wait_for(lambda: parts(node) == [], what="nothing to be half here")
    (row,) = arrived(node)  # all of them were the same egg
    assert node.owner("DELETE", f"/eggs/arrived/{row['id']}")[0] == 200


def test_resent_egg_replaces_one_on_a_dead_connection(node: Node, egg: bytes) -> None:
    friend, id = node.peer("patient", whose="friend"), str(uuid.uuid4())
    assert friend.request("GET", f"/eggs/{id}").status == 404
    dead = begun(friend, egg, "rose.egg", id)
    node.daemon.wait_for(lambda: len(parts(node)) == 1, what="it to come in")
    headers = {"Content-Type": OCTETS, "X-Rappd-Name": "rose.egg", "X-Rappd-Id": id}
    first = friend.request("POST", "/eggs", egg, headers=headers)
    assert first.status == 200
    dead.close()
    (row,) = arrived(node)
    assert friend.request("GET", f"/eggs/{id.upper()}").json == first.json
    assert node.owner("DELETE", f"/eggs/arrived/{row['id']}")[0] == 200
    again = friend.request("POST", "/eggs", egg, headers=headers)
    assert (again.status, again.json) == (200, first.json)
    assert arrived(node) == [], "what its owner threw away does not come back"
    other = node.peer("another", whose="friend")
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


def parts(node: Node) -> list[Path]:
    return list((node.daemon.home / "eggs" / ".arrived").glob("*.part"))
