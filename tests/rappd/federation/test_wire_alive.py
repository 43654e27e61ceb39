"""docs/wire.md and a daemon: a machine that has read the page alone is answered as it stands there."""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from spake2 import SPAKE2_Symmetric

from envelopes.codecs import wire
from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_machine import PlainMachine
from tests.rappd.federation.wire_page import PAGE, Json, blocks, introductions, plain, rows, shown


@pytest.fixture(scope="module")
def mine(node: Node) -> PlainMachine:
    return node.peer("mine")


@pytest.fixture
def filled(node: Node) -> Callable[[str, PlainMachine], Any]:
    """An example with the keys of the two that talk."""

    def fill(mark: str, machine: PlainMachine) -> Any:
        (text,) = blocks(mark)
        desk, pi = (introductions()[name]["fingerprint"][:16] for name in ("desk", "pi"))
        text = text.replace(desk, machine.fingerprint[:16]).replace(pi, node.fingerprint[:16])
        return json.loads(text)

    return fill


Filled = Callable[[str, PlainMachine], Any]


def test_the_call_on_the_page_is_answered_as_it_stands_there(mine: PlainMachine, filled: Filled) -> None:
    asked = filled("request-help", mine)
    got = mine.post(asked)
    assert (got.status, got.json) == (200, filled("response-help-200", mine))
    assert mine.request("GET", f"/envelopes/{asked['id']}").json == got.json
    assert mine.post(asked).json == got.json


def test_the_malformed_one_is_refused_as_it_stands_there(mine: PlainMachine, filled: Filled) -> None:
    got = mine.post({**filled("request-help", mine), "data2": 1})
    assert (got.status, got.json) == (400, filled("response-malformed-400", mine))


def test_the_batch_is_answered_as_it_stands_there(mine: PlainMachine, filled: Filled) -> None:
    asked = filled("request-batch", mine)
    got = mine.request("POST", "/envelopes/batch", asked)
    assert (got.status, got.json) == (200, filled("response-batch-200", mine))
    assert mine.waits_for(asked[0]["id"])["data"]["result"]


def test_unauthenticated_hello_gets_documented_card(node: Node, filled: Filled) -> None:
    who = node.stranger()
    got = who.post(filled("request-hello", who), certificate=False)
    told = filled("response-hello-200", who)
    assert got.status == 200
    assert {**got.json, "data": 0} == {**told, "data": 0}
    assert {**got.data, "introduction": 0} == {**told["data"], "introduction": 0}
    assert got.data["introduction"].keys() == introductions()["pi"].keys()


def test_capabilities_and_unknown_ids_answer_as_documented(mine: PlainMachine, filled: Filled) -> None:
    told = filled("response-capabilities-200", mine)
    got = mine.request("GET", f"/agents/{told['id']}/capabilities")
    assert (got.status, got.json) == (200, told)
    got = mine.request("GET", f"/envelopes/{uuid.uuid4()}")
    assert (got.status, got.json) == (404, filled("error", mine))


def test_progress_comes_as_events_that_end_with_the_answer(mine: PlainMachine) -> None:
    asked = mine.envelope("HELP", {"prompt": "how are you"})
    got = mine.post(asked, headers={"Accept": "text/event-stream"})
    assert got.headers["content-type"].startswith("text/event-stream")
    events = [
        dict(row.split(": ", 1) for row in one.splitlines() if not row.startswith(":"))
        for one in got.body.decode().strip().split("\n\n")
    ]
    assert [event["id"] for event in events] == [str(number + 1) for number in range(len(events))]
    *pieces, last = (wire.decode(event["data"].encode()) for event in events)
    assert [piece.data["n"] for piece in pieces] == [number + 1 for number in range(len(pieces))]
    assert {piece.verb for piece in pieces} == {"STREAM"}
    assert (last.verb, last.id) == ("DONE", asked["id"])
    again = mine.request("GET", f"/envelopes/{asked['id']}/stream", headers={"Last-Event-ID": "1"})
    assert again.body.startswith(b"id: 2\n")


def test_an_egg_arrives_as_the_page_says(node: Node, mine: PlainMachine) -> None:
    assert node.daemon.cli("twins", "new", "Rose").returncode == 0
    egg = node.folder / "rose.egg"
    packed = node.daemon.cli("egg", "pack", "Rose", "--output", str(egg))
    assert packed.returncode == 0, packed.stderr
    octets = egg.read_bytes()
    headers = {"Content-Type": "application/octet-stream", "X-Rappd-Name": "rose%20of%20mine.egg"}
    got = mine.request("POST", "/eggs", octets, headers=headers)
    assert got.status == 200, got.body
    assert got.json["arrived"].keys() == shown("response-eggs-200")["arrived"].keys()
    assert got.json["arrived"] == {
        "id": hashlib.sha256(octets).hexdigest(),
        "name": "rose of mine.egg",
        "size": len(octets),
    }
    friend = node.peer("friend", scopes=[])
    refused = friend.request("POST", "/eggs", octets, headers=headers)
    assert (refused.status, refused.json["code"]) == (403, "refused")


def test_a_machine_that_follows_the_page_pairs_by_words(node: Node) -> None:
    who = node.stranger()
    met = who.post(who.envelope("HELLO", {"capabilities": []}, to="broadcast"), certificate=False)
    theirs = met.data["introduction"]
    attempt, nonce = str(uuid.uuid4()), hashlib.sha256(who.public).digest()
    promise = b"rappd/pairing-nonce\n" + nonce + f"{who.fingerprint}{theirs['fingerprint']}".encode()

    def step(name: str, **more: Any) -> Json:
        body = {"step": name, "attempt": attempt, **more}
        got = who.request("POST", "/pairing", body, certificate=False)
        assert got.status == 200, got.body
        found: Json = got.json
        return found

    offered = step("offer", introduction=who.introduction, commitment=hashlib.sha256(promise).hexdigest())
    assert offered["introduction"] == theirs
    assert step("reveal", nonce=nonce.hex()) == {"state": "words"}
    said = plain(who.introduction) + plain(theirs) + nonce + bytes.fromhex(offered["nonce"])
    seen = hashlib.sha256(b"rappd/pairing-words\n" + said).digest()
    (listed,) = blocks("words")
    shown_there = node.owner("GET", f"/pairings/{attempt}")[1]["pairing"]
    assert shown_there["words"] == [listed.split()[byte] for byte in seen[:4]]
    status, _ = node.owner("POST", f"/pairings/{attempt}", {"same": True, "whose": "mine"})
    assert status == 200
    assert step("poll")["state"] == "waiting"
    yes = who.key.sign(b"rappd/pairing-verdict\n" + seen + b"1")
    ended = step("verdict", same=True, signature=yes.hex())
    assert ended["state"] == "paired"
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(theirs["public_key"]))
    key.verify(bytes.fromhex(ended["verdict"]["signature"]), b"rappd/pairing-verdict\n" + seen + b"1")
    assert who.post(who.help(args={"zone": "UTC"})).data["result"] == "it is UTC"


def test_a_machine_that_follows_the_page_pairs_by_code(node: Node) -> None:
    who = node.stranger()
    status, found = node.owner("POST", "/pairings", {"offer_code": True, "whose": "mine"})
    assert status == 200, found
    met = who.post(who.envelope("HELLO", {"capabilities": []}, to="broadcast"), certificate=False)
    theirs, attempt = met.data["introduction"], str(uuid.uuid4())
    side = SPAKE2_Symmetric(found["pairing"]["code"].encode(), idSymmetric=b"rappd/pairing-code\n")
    message = side.start()
    begun = {"step": "code", "attempt": attempt, "introduction": who.introduction, "message": message.hex()}
    got = who.request("POST", "/pairing", begun, certificate=False)
    assert got.status == 200, got.body
    answer = bytes.fromhex(got.json["message"])
    key = side.finish(answer)
    seen = hashlib.sha256(
        b"rappd/pairing-code\n" + plain(who.introduction) + plain(theirs) + message + answer
    ).digest()
    over = b"rappd/pairing-code\nasks\n" + seen
    proof = {"proof": hmac.digest(key, over, "sha256").hex(), "signature": who.key.sign(over).hex()}
    got = who.request("POST", "/pairing", {"step": "confirm", "attempt": attempt, **proof}, certificate=False)
    assert got.status == 200, got.body
    assert got.json["state"] == "paired"
    back = b"rappd/pairing-code\nanswers\n" + seen
    assert got.json["proof"] == hmac.digest(key, back, "sha256").hex()
    assert who.post(who.help(args={"zone": "UTC"})).data["result"] == "it is UTC"


def test_page_hides_a_closed_listener() -> None:
    """A2A and MCP map onto routes and verbs that exist."""
    mapped = PAGE[PAGE.index("\n## MCP\n") :]
    served = {row[0].partition(" ")[2] for row in rows("Route", "Who", "What")}
    for route in re.findall(r"`(?:GET|POST) (/(?:envelopes|agents/\{id\}|eggs)[^`]*)`", mapped):
        assert route in served, route


def test_twins_are_listed_as_the_page_says(node: Node, mine: PlainMachine, filled: Filled) -> None:
    said = filled("response-snapshot-twins-200", mine)
    (twin,) = said["twins"]
    folder = node.daemon.home / "twins" / twin["hash"]
    (folder / "agents").mkdir(parents=True)
    (folder / "rappid.json").write_text(json.dumps(twin["rappid_json"]))
    (folder / "soul.md").write_text("You are a gardener.")
    (folder / "agents" / "water_agent.py").write_text("")
    got = mine.request("GET", "/snapshot/twins").json
    listed = next(one for one in got["twins"] if one["hash"] == twin["hash"])
    assert got.keys() == said.keys()
    assert (got["host"], "clock_agent.py" in got["agent_files"]) == ("pi", True)
    changing = ("workspace_bytes", "workspace_files", "fingerprint")
    assert {**listed, **{name: twin[name] for name in changing}} == twin
    assert all(type(listed[name]) is type(twin[name]) for name in changing)
