"""Any bytes to the listener for machines, by a peer or by nobody: one reply in one shape, and it lives on."""

from __future__ import annotations

import asyncio
import http.client
import json
import uuid
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.rappd.federation.conftest import Node, make_node
from tests.rappd.federation.plain_connection import line_of
from tests.rappd.federation.plain_machine import PlainMachine

pytestmark = pytest.mark.own_process  # Hypothesis rules the random numbers of this one

KEYS = ["id", "from", "to", "verb", "data", "_x_thread", "_x_deadline", "_x_cap", "_x_sig", "_x_path",
        "_x_traceparent", "_x_ttl", "_x_slush", "_x_usage_tokens", "_x_odd", "odd"]  # fmt: skip
VERBS = ["HELLO", "HELP", "DONE", "ERROR", "STREAM", "CANCEL", "ACK", "PLEASE", "help", "", "A" * 40]
FUZZ = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

texts = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["", "*", "broadcast", "brainstem", "Clock", "Twin", "\0", "a_b", "../..", "x" * 300, "\ud800"]
    ),
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), texts),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(texts, inner, max_size=4)),
    max_leaves=8,
)
datas = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            "agent": st.one_of(st.sampled_from(["Clock", "Twin", "Secret", "", "a.b", "*"]), values),
            "args": values,
            "user_input": texts,
            "prompt": values,
            "stream": st.one_of(st.booleans(), values),
            "result": values,
            "code": values,
            "introduction": values,
        },
    ),
    values,
)
SIGNATURE = {"alg": "Ed25519", "kid": "0" * 64, "key": "0" * 64, "t": 1, "s": "0" * 128}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    found = make_node(tmp_path_factory.mktemp("fuzz"), LLM_FAKE="1").start()
    yield found
    assert "Traceback" not in found.daemon.log
    found.close()


@pytest.fixture(scope="module")
def mine(node: Node) -> PlainMachine:
    return node.peer("mine")


Connections = dict[bool, http.client.HTTPSConnection]


@pytest.fixture(scope="module")
def kept(mine: PlainMachine) -> Iterator[Connections]:
    """Connections with and without a certificate: the entrance admits only so many new ones in a second."""
    found = {certificate: mine.connect(certificate=certificate) for certificate in (True, False)}
    yield found
    for connection in found.values():
        connection.close()


@st.composite
def envelopes(draw: Any) -> dict[str, Any]:
    found: dict[str, Any] = {
        "id": str(draw(st.uuids(version=4))),
        "from": "OWN",
        "to": draw(st.one_of(st.sampled_from(["HERE", "broadcast", "AGENT", "TWIN"]), texts)),
        "verb": draw(st.sampled_from(VERBS)),
        "data": draw(datas),
    }
    for key, value in draw(st.dictionaries(st.sampled_from(KEYS), values, max_size=2)).items():
        found[key] = value
    if draw(st.booleans()):
        found["_x_path"] = draw(st.lists(st.sampled_from(["0" * 16, "f" * 16, "x"]), max_size=9))
    if draw(st.integers(0, 9)) == 0:
        found["_x_sig"] = {
            **SIGNATURE,
            **draw(st.dictionaries(st.sampled_from(list(SIGNATURE)), values, max_size=1)),
        }
    if draw(st.integers(0, 9)) == 0:
        found["_x_cap"] = draw(st.one_of(texts, st.lists(texts, max_size=9), st.just("a.b.c")))
    for key in draw(st.lists(st.sampled_from(KEYS[:5]), max_size=1)) if draw(st.booleans()) else []:
        found.pop(key, None)
    return found


def placed(machine: PlainMachine, envelope: dict[str, Any]) -> dict[str, Any]:
    """With the ends that lead somewhere."""
    ends = {"HERE": machine.to(), "AGENT": machine.to("Clock"), "TWIN": machine.to("Twin"), "OWN": machine.id}
    return {
        key: ends.get(value, value) if key in ("from", "to") and isinstance(value, str) else value
        for key, value in envelope.items()
    }


def written(found: Any) -> bytes:
    return json.dumps(found).encode()


def is_reply(found: Any) -> bool:
    return {"id", "from", "to", "verb", "data"} <= set(found) and found["verb"] in (
        "HELLO", "DONE", "ERROR", "ACK",
    )  # fmt: skip


@FUZZ
@given(envelope=envelopes(), certificate=st.booleans())
def test_any_envelope(
    node: Node, mine: PlainMachine, kept: Connections, envelope: dict[str, Any], certificate: bool
) -> None:
    got = mine.post(written(placed(mine, envelope)), on=kept[certificate])
    if got.status == 204:  # nothing is answered to what answers
        assert certificate and envelope["verb"] in ("ACK", "STREAM") and not got.body
        return
    assert got.status != 500 or got.data["reason"] in ("agent", "interrupted")
    assert is_reply(got.json)
    assert got.status == {"ACK": 202, "ERROR": got.data.get("code")}.get(got.verb, 200)
    assert "Traceback" not in got.body.decode()
    if not certificate:
        assert got.verb in ("HELLO", "ERROR")


@FUZZ
@given(body=st.one_of(st.binary(max_size=200), values.map(written)), token=st.text("ab.=-_", max_size=40))
def test_any_body(node: Node, mine: PlainMachine, kept: Connections, body: bytes, token: str) -> None:
    for path in ("/envelopes", "/envelopes/batch"):
        got = mine.request("POST", path, body, token=token, on=kept[True])
        found = got.json
        if isinstance(found, list):
            assert all(map(is_reply, found))
        else:
            assert is_reply(found)
            assert 400 <= got.status < 500


@FUZZ
@given(batch=st.lists(st.one_of(envelopes(), values), max_size=6))
def test_any_batch(node: Node, mine: PlainMachine, kept: Connections, batch: list[Any]) -> None:
    sent = [placed(mine, one) if isinstance(one, dict) else one for one in batch]
    got = mine.request("POST", "/envelopes/batch", written(sent), on=kept[True])
    if got.status != 200:
        assert (got.status, got.data["reason"]) == (400, "malformed")
        return
    assert len(got.json) == len(batch)
    for one, reply in zip(sent, got.json, strict=True):
        assert is_reply(reply)
        if isinstance(one, dict) and isinstance(one.get("id"), str) and one["id"].count("-") == 4:
            assert reply["id"] == one["id"] or reply["verb"] == "ERROR"


@FUZZ
@given(
    protocol=st.sampled_from(["rappd.1", "rappd.2"]),
    frames=st.lists(
        st.one_of(envelopes(), values, st.binary(max_size=60), st.text(max_size=60)), min_size=1, max_size=5
    ),
)
def test_any_frames(node: Node, mine: PlainMachine, protocol: str, frames: list[Any]) -> None:
    """After all of them a question on the same line is answered."""

    async def go() -> None:
        async with line_of(mine, protocol) as line:
            for frame in frames:
                if isinstance(frame, bytes):
                    await line.send_bytes(frame)
                else:
                    shown = placed(mine, frame) if isinstance(frame, dict) else frame
                    await line.send_str(
                        frame if isinstance(frame, str) and len(frame) > 40 else json.dumps(shown)
                    )
            asked = mine.help()
            await line.send(asked)
            async with asyncio.timeout(100):
                while True:
                    message = await line.receive()
                    assert message.type in (aiohttp.WSMsgType.TEXT, aiohttp.WSMsgType.BINARY), message
                    said = message.data if isinstance(message.data, str) else message.data.decode()
                    assert "Traceback" not in said
                    if asked["id"] in said:
                        break
            assert "DONE" in said

    asyncio.run(go())


@FUZZ
@given(
    ident=st.text("0123456789abcdef-./%?", min_size=1, max_size=40), last=st.text("0123456789x-", max_size=12)
)
def test_any_id(node: Node, mine: PlainMachine, kept: Connections, ident: str, last: str) -> None:
    for path in (f"/envelopes/{ident}", f"/envelopes/{ident}/stream", f"/agents/{ident}/capabilities"):
        got = mine.request("GET", path, headers={"Last-Event-ID": last}, on=kept[True])
        assert got.status in (400, 404, 405)


def test_it_is_well_after_all_that(node: Node, mine: PlainMachine) -> None:
    assert mine.post(mine.help(_x_thread=str(uuid.uuid4()))).data["result"] == "it is now"
    assert node.daemon.get("/readyz").status == 200
