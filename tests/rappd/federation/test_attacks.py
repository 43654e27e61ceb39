"""Attacks on the listener for machines: replays, forged and stolen proofs, other names, ended trust."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
import uuid
from datetime import timedelta
from typing import Any

import aiohttp
import pytest

from tests.rappd.federation.conftest import Node
from tests.rappd.federation.plain_connection import PlainLine, line_of
from tests.rappd.federation.plain_machine import PlainMachine


@pytest.fixture(scope="module")
def mine(node: Node) -> PlainMachine:
    return node.peer("mine")


@pytest.fixture(scope="module")
def other(node: Node) -> PlainMachine:
    return node.peer("other")


def refused(got: Any, reason: str, status: int = 401) -> None:
    assert (got.status, got.verb, got.data["code"], got.data["reason"]) == (status, "ERROR", status, reason)


def test_own_token_counts_with_or_without_certificate(mine: PlainMachine) -> None:
    assert mine.post(mine.help(), certificate=False, token=mine.token()).verb == "DONE"
    assert mine.post(mine.help(), token=mine.token(bound=True)).verb == "DONE"


def test_a_token_over_another_machines_connection_is_refused(mine: PlainMachine, other: PlainMachine) -> None:
    for token in (mine.token(), mine.token(bound=True)):
        refused(other.post(mine.help(), token=token), "bad_token")
    refused(mine.post(mine.help(), certificate=False, token=mine.token(bound=True)), "bad_token")


@pytest.mark.parametrize(
    "change",
    [
        {"exp": 10},
        {"iat": timedelta(seconds=-900), "exp": timedelta(seconds=-301)},
        {"iat": timedelta(seconds=400), "exp": timedelta(seconds=900)},
        {"aud": "0" * 64},
        {"exp": timedelta(days=1)},
        {"sub": "brainstem_0000000000000000"},
        {"iss": "0" * 64},
        {"caps": ["*"]},
        {"iat": None},
        {"exp": "soon"},
        {"nbf": timedelta(seconds=1000)},
        {"cnf": {"x5t#S256": "AAAA"}},
    ],
)
def test_tokens_that_do_not_hold(mine: PlainMachine, change: dict[str, Any]) -> None:
    now = int(time.time())  # what lies ahead does so from now, not from when the tests were collected
    claims = {
        name: now + int(value.total_seconds()) if isinstance(value, timedelta) else value
        for name, value in change.items()
    }
    got = mine.post(mine.help(), certificate=False, token=mine.token(**claims))
    assert (got.status, got.verb) == (401, "ERROR")
    assert got.data["reason"] in ("bad_token", "not_paired")


def test_no_algorithm_but_one(node: Node, mine: PlainMachine) -> None:
    claims = mine.token().split(".")[1]
    for header in (
        {"alg": "none"},
        {"alg": "None", "typ": "JWT"},
        {"alg": "HS256", "typ": "JWT"},
        {"alg": "EdDSA", "crit": ["exp"]},
        {"alg": "ES256"},
    ):
        head = base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=").decode()
        for text in (f"{head}.{claims}.", f"{head}.{claims}.AAAA", f"{head}.{claims}"):
            refused(mine.post(mine.help(), certificate=False, token=text), "bad_token")
    whole = mine.token()
    refused(mine.post(mine.help(), certificate=False, token=whole[:-4] + "AAAA"), "bad_token")
    stranger = node.stranger()
    refused(stranger.post(stranger.help(), certificate=False, token=stranger.token()), "not_paired")


def test_clocks_two_minutes_apart(mine: PlainMachine) -> None:
    """A certificate proves at any time; a token some while before and a minute after; signatures five."""
    assert mine.post(mine.help()).verb == "DONE"
    assert mine.post(mine.help(), certificate=False, token=mine.token(at=time.time() - 120)).verb == "DONE"
    assert mine.post(mine.help(), certificate=False, token=mine.token(at=time.time() + 50)).verb == "DONE"
    ahead = mine.token(at=time.time() + 120)
    refused(mine.post(mine.help(), certificate=False, token=ahead), "bad_token")
    assert mine.post(mine.help(), token=mine.token(at=time.time() - 120)).verb == "DONE"
    for skew in (-120, 120):
        assert mine.post(mine.signed(mine.help(), at=time.time() + skew)).verb == "DONE"
    for skew in (-400, 400):
        refused(mine.post(mine.signed(mine.help(), at=time.time() + skew)), "bad_signature")


def test_a_signature_over_another_body_or_by_another_machine(mine: PlainMachine, other: PlainMachine) -> None:
    signed = mine.signed(mine.help("Clock"))
    swapped = {**signed, "data": {"agent": "Secret", "args": {}}}
    refused(mine.post(swapped), "bad_signature")
    newer = {**signed, "_x_sig": {**signed["_x_sig"], "t": signed["_x_sig"]["t"] + 1}}
    refused(mine.post(newer), "bad_signature")
    for seconds in (-360, 360):
        refused(mine.post(mine.signed(mine.help(), at=time.time() + seconds)), "bad_signature")
    refused(other.post({**signed, "from": other.id}), "bad_signature")
    assert mine.post(signed).verb == "DONE", "positive control"
    refused(other.post(other.signed(mine.help())), "wrong_sender", 403)
    refused(mine.post(other.signed(mine.help())), "bad_token")
    # A signature alone, on nobody's connection, is no sign-in.
    refused(mine.post(mine.signed(mine.help()), certificate=False), "not_paired")


@pytest.mark.parametrize("way", ["envelopes", "batch"])
def test_signature_of_a_question_stays_in_its_record(node: Node, mine: PlainMachine, way: str) -> None:
    signed = mine.signed(mine.help("Clock"))
    if way == "batch":
        assert mine.request("POST", "/envelopes/batch", [signed]).json[0]["verb"] == "ACK"
        assert mine.waits_for(signed["id"], "DONE")
    else:
        assert mine.post(signed).verb == "DONE"
    asked, answered = node.records(signed["id"])
    assert asked.pop("_x_thread")  # this machine's own; the rest is what was signed, and still proves it
    assert asked == signed
    assert "_x_sig" not in answered


def test_nobody_speaks_in_the_name_of_another_peer(node: Node, mine: PlainMachine) -> None:
    other = node.peer("liar")
    for verb, data in (
        ("HELP", {"agent": "Clock"}),
        ("HELLO", {}),
        ("DONE", {"result": "x"}),
        ("CANCEL", {}),
    ):
        refused(other.post(other.envelope(verb, data, sender=mine.id)), "wrong_sender", 403)
    batch = other.request("POST", "/envelopes/batch", [other.help(sender=mine.id)])
    assert batch.json[0]["data"]["reason"] == "wrong_sender"
    node.daemon.wait_for_log("security")


def test_a_repeat_is_answered_from_the_record_and_done_once(node: Node, mine: PlainMachine) -> None:
    asked = mine.help("Counted", {"tell": "replayed"})
    answers = [mine.post(asked).data["result"] for _ in range(3)]
    assert answers == ["counted replayed"] * 3
    swapped = {**asked, "data": {"agent": "Counted", "args": {"tell": "swapped"}}}
    assert mine.post(swapped).data["result"] == "counted replayed"
    assert node.counted().count("replayed") == 1
    assert "swapped" not in node.counted()
    assert [one["verb"] for one in node.records(asked["id"])] == ["HELP", "DONE"]


def test_without_the_capability_nobody_learns_what_exists(node: Node) -> None:
    friend = node.peer("friend", "friend", ["HELP.brainstem.Clock"])
    status, found = node.owner("POST", "/twins", {"name": "Gardener"})
    assert status in (200, 201), found
    asked = [
        friend.help("Secret"),
        friend.help("NoSuchAgentError"),
        friend.help("Twin", {"action": "purge"}),
        friend.help("LearnNew"),
        friend.help("AskPeer"),
        friend.envelope("HELP", {"user_input": "hello"}),
        friend.envelope("HELP", {"user_input": "hello"}, to=friend.to("Gardener")),
        friend.envelope("HELP", {"user_input": "hello"}, to=friend.to("Nobody")),
        friend.envelope("HELP", {"agent": "Clock"}, to=friend.to("Gardener")),
        friend.envelope("HELP", {"x": 1}, to=friend.to("Secret")),
        friend.envelope("HELP", {"x": 1}, to=friend.to("Twin")),
        friend.envelope("HELP", {"x": 1}, to=friend.to("a.b*")),
    ]
    got = [friend.post(one) for one in asked]
    assert {one.status for one in got} == {403}
    assert len({json.dumps(one.data, sort_keys=True) for one in got}) == 1
    assert {tuple(one.json) for one in got} == {("id", "from", "to", "verb", "data")}
    assert {frozenset(one.headers) - {"date"} for one in got}.__len__() == 1
    assert friend.post(friend.help("Clock")).verb == "DONE"
    names = friend.post(friend.envelope("HELLO", {})).data
    assert (names["capabilities"], names["twins"]) == (["Clock"], [])


def test_structural_agents_are_nobodys_from_elsewhere(node: Node, mine: PlainMachine) -> None:
    before = node.owner("GET", "/twins")[1]
    for name in ("Twin", "twin", "HatchEgg", "LayEgg", "LearnNew", "SwarmFactory"):
        got = mine.post(mine.help(name, {"action": "summon", "name": "mole"}))
        refused(got, "refused", 403)
        assert got.data["msg"] == "Not allowed."
        to = mine.envelope("HELP", {"action": "summon"}, to=mine.to(name))
        missing = mine.envelope("HELP", {"action": "summon"}, to=mine.to("Nothing"))
        shown, unknown = mine.post(to), mine.post(missing)
        assert (shown.status, shown.data["reason"]) == (unknown.status, unknown.data["reason"])
    assert node.owner("GET", "/twins")[1] == before

    def told() -> bool:
        return any("security" in line and "Twin" in line for line in node.daemon.log.splitlines())

    node.daemon.wait_for(told, what="the log, which is written apart")


def test_questions_that_come_round_or_go_too_far_end(mine: PlainMachine) -> None:
    own = mine.daemon_fingerprint[:16]
    refused(mine.post(mine.help(_x_path=[mine.fingerprint[:16], own])), "loop", 508)
    far = [f"{n:016x}" for n in range(7)]
    refused(mine.post(mine.help(_x_path=far)), "too_deep", 508)
    assert mine.post(mine.help(_x_path=far[:6])).verb == "DONE"


def test_an_unknown_certificate_is_not_let_in(node: Node) -> None:
    stranger = node.stranger()
    with pytest.raises((ssl.SSLError, ConnectionError, OSError)):
        stranger.post(stranger.help())
    assert stranger.post(stranger.envelope("HELLO", {}), certificate=False).verb == "HELLO"


def test_ended_trust_counts_on_connections_that_are_open(node: Node) -> None:
    gone = node.peer("gone")
    connection = gone.connect()
    assert gone.post(gone.help(), on=connection).verb == "DONE"
    token = gone.token()
    status, found = node.owner("POST", f"/peers/{gone.fingerprint}/revoke")
    assert status == 200, found
    refused(gone.post(gone.help(), on=connection), "not_paired")
    refused(gone.post(gone.envelope("DONE", {"result": 1}), on=connection), "not_paired")
    assert gone.request("GET", f"/envelopes/{uuid.uuid4()}", on=connection).status == 401
    batch = gone.request("POST", "/envelopes/batch", [gone.help()], on=connection)
    assert batch.json[0]["data"]["reason"] == "not_paired"
    connection.close()
    refused(gone.post(gone.help(), certificate=False, token=token), "not_paired")
    until = time.monotonic() + 100
    while time.monotonic() < until:  # the pin is taken out beside
        try:
            gone.post(gone.help())
        except (OSError, ssl.SSLError):
            return
        time.sleep(0.1)
    raise AssertionError("its certificate is still let in")


async def test_ended_trust_ends_the_lines_that_are_open(node: Node) -> None:
    gone = await asyncio.to_thread(node.peer, "lined")
    async with line_of(gone) as first, line_of(gone) as second:
        for line in (first, second):
            asked = gone.help()
            await line.send(asked)
            assert await _reply(line, asked["id"])
        await asyncio.to_thread(node.owner, "POST", f"/peers/{gone.fingerprint}/revoke")
        for line in (first, second):
            async with asyncio.timeout(100):
                while (message := await line.receive()).type is aiohttp.WSMsgType.TEXT:
                    pass
            assert message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)


async def test_who_is_paired_anew_at_once_is_let_in(node: Node) -> None:
    back = await asyncio.to_thread(node.peer, "back")
    for _ in range(3):
        await asyncio.to_thread(node.owner, "POST", f"/peers/{back.fingerprint}/revoke")
        await asyncio.to_thread(node.pair, back)
        await asyncio.sleep(0.5)
        assert (await asyncio.to_thread(back.post, back.help())).verb == "DONE"


async def _reply(line: PlainLine, id: str) -> Any:
    async with asyncio.timeout(100):
        while True:
            found = await line.hear()
            if found["id"] == id:
                return found
