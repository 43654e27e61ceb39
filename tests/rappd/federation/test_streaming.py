"""Progress while the work runs: STREAM on a line and as events, taken up again, stopped."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from fixtures.loopback_server import FakeModel, calls, says

from tests.rappd.federation.conftest import Node, make_node
from tests.rappd.federation.plain_connection import PlainLine, line_of
from tests.rappd.federation.plain_machine import PlainMachine

EVENTS = {"Accept": "text/event-stream"}


@pytest.fixture(scope="module")
def node(model: FakeModel, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    folder = tmp_path_factory.mktemp("streams")
    found = make_node(folder, OPENAI_BASE_URL=model.url, OPENAI_MODEL="small").start()
    yield found
    found.close()


@pytest.fixture(scope="module")
def mine(node: Node) -> PlainMachine:
    return node.peer("mine")


@pytest.fixture(autouse=True)
def scripted(model: FakeModel) -> Iterator[None]:
    model.will(calls(("Counted", {"tell": "one", "seconds": 0.6})), says("all of it"))
    model.pieces = []
    model.reached.clear()
    model.hung_up.clear()
    yield
    model.hang = False


async def told(line: PlainLine, id: str) -> list[dict[str, Any]]:
    """Every envelope on that id until one that ends it."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(100):
        while not found or found[-1]["verb"] == "STREAM":
            one = await line.hear()
            if one["id"] == id:
                found.append(one)
    return found


def events(body: bytes) -> list[tuple[int, dict[str, Any]]]:
    found = []
    for block in body.decode().split("\n\n"):
        fields = dict(row.split(": ", 1) for row in block.splitlines() if ": " in row)
        if "data" in fields:
            found.append((int(fields["id"]), json.loads(fields["data"])))
    return found


async def test_a_line_tells_what_happens_only_to_who_wants_it(mine: PlainMachine, model: FakeModel) -> None:
    async with line_of(mine) as line:
        asked = mine.envelope("HELP", {"user_input": "go", "stream": True})
        await line.send(asked)
        found = await told(line, asked["id"])
        assert [one["verb"] for one in found][-1] == "DONE"
        assert found[-1]["data"]["result"] == "all of it"
        pieces = found[:-1]
        assert {one["verb"] for one in pieces} == {"STREAM"}
        assert {(one["from"], one["to"]) for one in found} == {(mine.to(), mine.id)}
        assert [one["data"]["n"] for one in pieces] == list(range(1, len(pieces) + 1))
        kinds = [one["data"]["event"]["type"] for one in pieces]
        assert kinds[:2] == ["call", "result"]
        text = [one["data"]["event"].get("text", "") for one in pieces]
        assert "".join(text) == "all of it"
        model.will(says("quiet"))
        asked = mine.envelope("HELP", {"user_input": "go"})
        await line.send(asked)
        assert [one["verb"] for one in await told(line, asked["id"])] == ["DONE"]


async def test_one_agent_on_a_line_needs_no_pieces(mine: PlainMachine) -> None:
    async with line_of(mine) as line:
        asked = mine.envelope("HELP", {"zone": "UTC", "stream": True}, to=mine.to("Clock"))
        await line.send(asked)
        found = await told(line, asked["id"])
        assert [one["verb"] for one in found] == ["DONE"]
        assert found[0]["data"]["result"] == "it is UTC"


def test_post_streams_only_when_events_are_accepted(mine: PlainMachine, model: FakeModel) -> None:
    got = mine.post(mine.envelope("HELP", {"user_input": "go"}), headers=EVENTS)
    assert got.status == 200
    assert got.headers["content-type"].startswith("text/event-stream")
    found = events(got.body)
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    assert {one["verb"] for _, one in found[:-1]} == {"STREAM"}
    assert found[-1][1]["verb"] == "DONE"
    model.will(says("plain"))
    got = mine.post(mine.envelope("HELP", {"user_input": "go", "stream": True}))
    assert (got.verb, got.data["result"]) == ("DONE", "plain")


def test_refusals_are_no_events(node: Node, mine: PlainMachine) -> None:
    got = mine.post(mine.help("NoSuch"), headers=EVENTS)
    assert (got.status, events(got.body)[-1][1]["data"]["code"]) == (200, 403)
    friend = node.peer("friend", "friend")
    got = friend.post(friend.help(), headers=EVENTS)
    assert (got.status, got.verb) == (403, "ERROR")
    got = mine.post(mine.envelope("PLEASE"), headers=EVENTS)
    assert (got.status, got.data["reason"]) == (400, "unknown_verb")


def test_a_stream_is_taken_up_where_it_broke(mine: PlainMachine) -> None:
    asked = mine.envelope("HELP", {"user_input": "go"})
    whole = events(mine.post(asked, headers=EVENTS).body)
    path = f"/envelopes/{asked['id']}/stream"
    again = events(mine.request("GET", path, headers={"Last-Event-ID": "2"}).body)
    assert again == whole[2:]
    assert events(mine.request("GET", path).body) == whole
    for odd in ("999999999999", "x", "-1", "\u00b2"):
        last = events(mine.request("GET", path, headers={"Last-Event-ID": odd}).body)
        assert last[-1][1]["data"]["result"] == "all of it"
    repeat = events(mine.post(asked, headers=EVENTS).body)
    assert repeat[-1][1]["data"]["result"] == "all of it"


def test_two_follow_one_work(node: Node, mine: PlainMachine) -> None:
    asked = mine.envelope("HELP", {"user_input": "go"})
    got: list[Any] = []
    first = threading.Thread(target=lambda: got.append(mine.post(asked, headers=EVENTS)))
    first.start()
    path = f"/envelopes/{asked['id']}/stream"
    until = time.monotonic() + 100
    while (second := mine.request("GET", path)).status == 404 and time.monotonic() < until:
        time.sleep(0.05)
    first.join(100)
    assert events(second.body) == events(got[0].body)


def test_events_end_with_ack_after_deadline(mine: PlainMachine) -> None:
    asked = mine.envelope("HELP", {"user_input": "go"}, _x_deadline=0.2)
    found = events(mine.post(asked, headers=EVENTS).body)
    assert found[-1][1]["verb"] == "ACK"
    assert mine.waits_for(asked["id"])["data"]["result"] == "all of it"


@pytest.mark.parametrize("way", ["line", "events", "wait"])
async def test_a_cancel_stops_the_work_and_its_record_says_so(
    node: Node, mine: PlainMachine, model: FakeModel, way: str
) -> None:
    model.hang = True
    asked = mine.envelope("HELP", {"user_input": "go", "stream": True})
    cancel = {**asked, "verb": "CANCEL", "data": {}}
    async with line_of(mine) as line:
        if way == "line":
            await line.send(asked)
            await asyncio.to_thread(model.reached.wait, 20)
            await line.send(cancel)
            found = await told(line, asked["id"])
            assert [one["verb"] for one in found] == ["ERROR"]
            status, data = found[0]["data"]["code"], found[0]["data"]
        else:
            headers = EVENTS if way == "events" else {}
            waiting = asyncio.create_task(asyncio.to_thread(mine.post, asked, headers=headers))
            await asyncio.to_thread(model.reached.wait, 20)
            other = await asyncio.to_thread(node.peer, f"other-{way}")
            stolen = {**cancel, "from": other.id}
            got = await asyncio.to_thread(other.post, stolen)
            assert (got.verb, got.data["state"]) == ("ACK", "unknown")
            got = await asyncio.to_thread(mine.post, cancel)
            assert (got.verb, got.data["state"]) == ("ACK", "stopped")
            answer = await waiting
            if way == "wait":
                status, data = answer.status, answer.data
            else:
                data = events(answer.body)[-1][1]["data"]
                status = data["code"]
    assert (status, data["code"], data["reason"]) == (499, 499, "stopped")
    assert await asyncio.to_thread(model.hung_up.wait, 20)  # the model is not asked on
    assert [one["verb"] for one in node.records(asked["id"])] == ["HELP", "ERROR"]
    assert node.records(asked["id"])[-1]["data"]["reason"] == "stopped"
    repeat = await asyncio.to_thread(mine.post, asked)
    assert (repeat.status, repeat.data["reason"]) == (499, "stopped")


def test_acknowledged_then_cancelled_is_delivered(mine: PlainMachine, model: FakeModel) -> None:
    model.hang = True
    asked = mine.envelope("HELP", {"user_input": "go"}, _x_deadline=0.2)
    assert mine.post(asked).verb == "ACK"
    mine.post({**asked, "verb": "CANCEL", "data": {}})
    assert mine.waits_for(asked["id"], "ERROR")["data"]["code"] == 499


def test_a_cancel_of_nothing(mine: PlainMachine) -> None:
    got = mine.post(mine.envelope("CANCEL"))
    assert (got.status, got.data["state"]) == (202, "unknown")


async def test_answers_are_not_answered_without_end(mine: PlainMachine) -> None:
    """An ACK gets nothing, an ERROR no ERROR, and what is no envelope one refusal."""
    async with line_of(mine) as line:
        for odd in (
            mine.envelope("ACK", {"state": "done"}),
            mine.envelope("STREAM", {"n": 1}),
            mine.envelope("ERROR", {"code": 500, "msg": "x"}, sender="unknown"),
            mine.envelope("ERROR", {"code": 500, "msg": "x"}, sender=f"brainstem_{'0' * 16}"),
        ):
            await line.send(odd)
        asked = mine.help()
        await line.send_str("no envelope")
        await line.send(asked)
        found = []
        async with asyncio.timeout(100):
            while not found or found[-1]["id"] != asked["id"]:
                found.append(await line.hear())
        assert [one["verb"] for one in found] == ["ERROR", "DONE"]
        assert found[0]["data"]["reason"] == "malformed"


async def test_excess_on_a_connection_is_postponed_alone(node: Node, mine: PlainMachine) -> None:
    async with line_of(mine) as line:
        asked = [mine.help("Counted", {"tell": f"many{n}"}) for n in range(400)]
        for one in asked:
            await line.send(one)
        hello = mine.envelope("HELLO")
        await line.send(hello)
        ids = {one["id"] for one in (*asked, hello)}
        answered: dict[str, Any] = {}
        async with asyncio.timeout(100):
            while len(answered) < len(ids):
                one = await line.hear()
                if one["id"] in ids:  # the daemon asks something, too
                    answered[one["id"]] = one
        put_off = [one for one in answered.values() if one["data"].get("reason") == "busy"]
        done = [one for one in answered.values() if one["verb"] == "DONE"]
        assert len(done) >= 256
        assert len(done) + len(put_off) + (answered[hello["id"]]["verb"] == "HELLO") == 401
        assert len([one for one in node.counted() if one.startswith("many")]) == len(done)


async def test_a_line_takes_no_frame_that_is_too_large(mine: PlainMachine) -> None:
    async with line_of(mine) as line:
        await line.send_str("x" * (3 << 20))
        async with asyncio.timeout(100):
            message = await line.receive()
        assert message.type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR)
    assert (await asyncio.to_thread(mine.post, mine.help())).verb == "DONE"
