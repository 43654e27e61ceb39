"""A peer that says odd things: its HELLO, its replies, its ids. Nobody who looks at it, or calls it, is harmed."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from typing import Any

import pytest

from envelopes.envelope import DONE, ERROR, Envelope
from neighborhoods.peer import Peer
from neighborhoods.transport.replies import arrived, readable
from rappd.federation.peer_greeting import read_greeting
from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_connection import line_of
from tests.rappd.federation.plain_machine import PlainMachine


@pytest.fixture(scope="module")
def mine(node: Node) -> PlainMachine:
    return node.peer("mine")


# What it says of itself.

CLOCK = {"name": "Clock", "description": "Tells the time.", "parameters": {"type": "object"}}


@pytest.mark.parametrize(
    ("said", "agents", "unread"),
    [
        ([CLOCK], ["Clock"], ()),
        ([{"name": "Clock"}], ["Clock"], ()),
        (["Clock"], [], ("agents",)),
        ([[1]], [], ("agents",)),
        ([None, CLOCK, {"name": 5}, {"name": "B", "parameters": "text"}], ["Clock"], ("agents",)),
        ("Clock", [], ("agents",)),
        ({"name": "Clock"}, [], ("agents",)),
        (None, [], ("agents",)),
        ([{"name": f"A{n}"} for n in range(3000)], [f"A{n}" for n in range(1000)], ("agents",)),
    ],
)
def test_greeting_keeps_the_agents_that_have_their_shape(
    said: Any, agents: list[str], unread: tuple[str, ...]
) -> None:
    found = read_greeting({"agents": said})
    assert ([one["name"] for one in found.agents], found.unread) == (agents, unread)
    assert all(set(one) == {"name", "description", "parameters"} for one in found.agents)


@pytest.mark.parametrize("key", ["capabilities", "verbs", "twins"])
@pytest.mark.parametrize("said", [5, "HELP", None, {"a": 1}, [1], [["x"]], [""], ["x" * 201]])
def test_greeting_keeps_texts_alone(key: str, said: Any) -> None:
    found = read_greeting({key: said})
    assert (getattr(found, key), found.unread) == ((), (key,))
    assert getattr(read_greeting({key: ["Rose", *(said if isinstance(said, list) else [])]}), key) == (
        "Rose",
    )


@pytest.mark.parametrize("odd", [["Clock"], [[1]]])
def test_agents_of_another_shape_leave_every_view_whole(node: Node, odd: Any) -> None:
    who = node.peer("odd")
    data = {"capabilities": odd, "agents": odd, "twins": [1], "verbs": 5, "name": ["x"]}
    assert who.post(who.envelope("HELLO", data)).status == 200
    shown = node.daemon.cli("peers", "show", who.name)
    assert (shown.returncode, "Traceback" in shown.stderr) == (0, False), shown.stderr
    assert node.daemon.cli("peers", "list").returncode == 0
    called = node.daemon.cli("call", f"{who.name}:Nosuch", "--wait", "1")
    assert (called.returncode, "Traceback" in called.stderr) == (8, False), called.stderr
    assert node.owner("GET", f"/peers/{who.name}")[1]["peer"]["agents_here"] == []
    node.daemon.wait_for_log(f"the HELLO of {who.name} has no documented shape in")


def test_a_peer_without_snapshots_is_told_as_that(node: Node, mine: PlainMachine) -> None:
    done = node.daemon.cli("fleet", "status")
    assert f"{mine.name} offers no snapshots" in done.stdout + done.stderr
    assert "Update rappd" not in done.stdout + done.stderr


# What it answers.


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (
            {"code": "x", "msg": ["a"], "reason": 5, "do": {}},
            (500, "It failed, and did not say why.", "failed", None),
        ),
        ({"code": 99}, (500, "It failed, and did not say why.", "failed", None)),
        ({"code": True, "msg": "no"}, (500, "no", "failed", None)),
        ({"code": 404, "msg": "no", "reason": "not_found", "do": "ask"}, (404, "no", "not_found", "ask")),
    ],
)
def test_an_error_is_read_in_its_shape(said: dict[str, Any], read: tuple[Any, ...]) -> None:
    found = readable(Envelope("1", "a", "b", ERROR, said)).data
    assert (found["code"], found["msg"], found["reason"], found.get("do")) == read
    assert readable(Envelope("1", "a", "b", DONE, said)).data is said


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ({"id": "ab", "name": "a.egg", "size": 5}, {"id": "ab", "name": "a.egg", "size": 5}),
        ({"id": 5, "name": ["a"], "size": "large"}, {"id": "", "name": "", "size": 0}),
        ({"size": -1, "more": 1}, {"id": "", "name": "", "size": 0}),
        ({"size": True}, {"id": "", "name": "", "size": 0}),
    ],
)
def test_what_a_peer_says_of_an_egg_is_read_in_its_shape(said: dict[str, Any], read: dict[str, Any]) -> None:
    peer = Peer("a" * 64, "pi", "mine", b"", b"", "", ("*",), 1)
    assert arrived(peer, 200, json.dumps({"arrived": said}).encode()) == read


ODD_REPLIES = {
    "an unknown key": ({"verb": "DONE", "data": {"result": 1}, "data2": 1}, "something that is no envelope"),
    "tokens as text": (
        {"verb": "DONE", "data": {"result": 1}, "_x_usage_tokens": "five"},
        "something that is no envelope",
    ),
    "a question": (
        {"verb": "HELP", "data": {"user_input": "you?"}},
        "answered with HELP, which is no answer",
    ),
    "an unknown verb": ({"verb": "MAYBE", "data": {}}, "answered with MAYBE, which is no answer"),
    "a code as text": ({"verb": "ERROR", "data": {"code": "x", "msg": [1]}}, "did not say why"),
}


@pytest.mark.parametrize("what", ODD_REPLIES)
async def test_a_reply_that_cannot_be_read_is_told_as_that_at_once(
    node: Node, mine: PlainMachine, what: str
) -> None:
    odd, told = ODD_REPLIES[what]
    async with line_of(mine) as line:
        started = time.monotonic()
        asking = asyncio.create_task(asyncio.to_thread(node.daemon.cli, "call", mine.name, "how are you?"))
        asked = await line.hear()
        assert asked["verb"] == "HELP"
        await line.send({"id": asked["id"], "from": mine.id, "to": asked["from"], **odd})
        done = await asking
    assert told in done.stdout + done.stderr
    assert "refused" not in done.stderr
    assert done.returncode == 1
    assert time.monotonic() - started < 15


async def test_reply_with_its_id_in_capitals_is_the_reply(node: Node, mine: PlainMachine) -> None:
    async with line_of(mine) as line:
        asking = asyncio.create_task(asyncio.to_thread(node.daemon.cli, "call", mine.name, "how are you?"))
        asked = await line.hear()
        reply = {"id": asked["id"].upper(), "from": mine.id, "to": asked["from"], "verb": "DONE"}
        await line.send({**reply, "data": {"result": "fine"}})
        done = await asking
    assert (done.returncode, done.stdout) == (0, "fine\n")


# What it asks.


def test_one_id_in_two_cases_is_performed_once(node: Node, mine: PlainMachine) -> None:
    told = uuid.uuid4().hex
    asked = {**mine.help("Counted", {"tell": told}), "id": "abcdef01-5e44-4a71-9bcb-5ddc21019fab"}
    loud = {**asked, "id": asked["id"].upper()}
    first, again = mine.post(asked), mine.post(loud)
    assert first.data["result"] == again.data["result"]
    assert again.json["id"] == loud["id"]
    batch = mine.request("POST", "/envelopes/batch", [loud, asked]).json
    assert [(one["id"], one["verb"]) for one in batch] == [(loud["id"], "DONE"), (asked["id"], "DONE")]
    fetched = mine.request("GET", f"/envelopes/{loud['id']}")
    assert (fetched.status, fetched.json["id"]) == (200, loud["id"])
    assert node.counted().count(told) == 1


def test_a_question_to_everybody_is_performed_by_nobody(node: Node, mine: PlainMachine) -> None:
    told = uuid.uuid4().hex
    asked = {**mine.help("Counted", {"tell": told}), "to": "broadcast"}
    for got in (mine.post(asked).json, *mine.request("POST", "/envelopes/batch", [asked]).json):
        assert (got["verb"], got["data"]["code"], got["data"]["reason"]) == ("ERROR", 404, "wrong_recipient")
    assert told not in node.counted()


def test_a_posted_answer_gets_none(mine: PlainMachine) -> None:
    for verb, data in (("ACK", {"state": "done"}), ("STREAM", {"n": 1, "event": {}})):
        got = mine.post(mine.envelope(verb, data))
        assert (got.status, got.body) == (204, b"")


@pytest.mark.parametrize("more", [0, 1])
def test_one_mebibyte_is_taken_and_a_byte_more_is_not(mine: PlainMachine, more: int) -> None:
    asked = mine.help("Clock", {"zone": ""})
    asked["data"]["args"]["zone"] = "x" * ((1 << 20) + more - len(json.dumps(asked)))
    got = mine.request("POST", "/envelopes", json.dumps(asked).encode())
    assert (got.status, got.data.get("reason")) == ((413, "too_large") if more else (200, None))


# Its tokens.


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"iat": None}, "'iat' has not its form"),
        ({"iat": ...}, "'iat' is missing"),
        ({"jti": ...}, "'jti' is missing"),
        ({"aud": "pi"}, "'aud' has not its form"),
        ({"exp": 4_000_000_000}, "'exp' is more than 600 s after 'iat'"),
        ({"caps": ["HELP.*"]}, "'caps' is for tokens that were issued here"),
        ({"uses": 2}, "it is one for '_x_cap'"),
    ],
)
def test_a_token_that_does_not_hold_says_which_claim(mine: PlainMachine, claims: Any, says: str) -> None:
    now = int(time.time())
    said = {"iss": mine.fingerprint, "sub": mine.id, "aud": mine.daemon_fingerprint, "iat": now,
            "exp": now + 300, "jti": str(uuid.uuid4())}  # fmt: skip
    said = {key: value for key, value in {**said, **claims}.items() if value is not ...}
    for _ in range(2):  # the second time it is known
        got = mine.request(
            "GET", f"/agents/{mine.to()}/capabilities", certificate=False, token=mine.jwt(said)
        )
        assert (got.status, got.json["code"]) == (401, "bad_token")
        assert says in got.json["error"]
