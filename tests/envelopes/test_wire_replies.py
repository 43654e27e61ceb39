"""Batches, refusals, the status that a reply travels with, and what a request must say that it is."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest

from envelopes.codecs import wire
from envelopes.envelope import Envelope, new_id
from envelopes.errors import BadSignatureError, MalformedError

ID = "550e8400-e29b-41d4-a716-446655440000"


def _object(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {
        "id": ID,
        "from": "agent_b_7df3",
        "to": "agent_a_912c",
        "verb": "HELP",
        "data": {},
    }
    return {key: value for key, value in {**base, **changes}.items() if value is not ...}


def _raw(**changes: Any) -> bytes:
    return json.dumps(_object(**changes)).encode()


def _nested(levels: int, empty: Any) -> Any:
    for _ in range(levels - 1):
        empty = {"d": empty} if isinstance(empty, dict) else [empty]
    return empty


def _refused(raw: bytes, **limits: Any) -> MalformedError:
    with pytest.raises(MalformedError) as caught:
        wire.decode(raw, **limits)
    return caught.value


# Batches.


def _batch(envelopes: list[Envelope]) -> bytes:
    return b"[%b]" % b",".join(map(wire.encode, envelopes))


def test_a_batch_comes_back_in_order() -> None:
    sent = [Envelope(new_id(), "a", "b", "HELP", {"n": n}) for n in range(100)]
    assert wire.decode_batch(_batch(sent)) == sent
    assert wire.decode_batch(_batch([])) == []


def test_a_bad_record_spoils_no_other_of_its_batch() -> None:
    bad = _object(id=ID.upper(), verb="help")
    raw = orjson.dumps([_object(), bad, 7, _object(data={"deep": _nested(62, {})})])
    first, second, third, fourth = wire.decode_batch(raw)
    assert isinstance(first, Envelope)
    assert isinstance(second, MalformedError)
    assert (second.key, second.id, second.sender) == ("verb", ID.upper(), "agent_b_7df3")
    assert isinstance(third, MalformedError)
    assert isinstance(fourth, Envelope)


def test_a_record_of_a_batch_has_the_size_that_it_has_alone() -> None:
    large = Envelope(new_id(), "a", "b", "HELP", {"text": "x" * (wire.MAX_BYTES - 200)})
    found = wire.decode_batch(orjson.dumps([_object(data={"text": "x" * wire.MAX_BYTES}), _object()]))
    assert [type(each) for each in found] == [MalformedError, Envelope]
    assert wire.decode_batch(_batch([large, large])) == [large, large]


@pytest.mark.parametrize(
    ("raw", "limits", "words"),
    [
        (_raw(), {}, "array"),
        (b"", {}, "not JSON"),
        (b"7", {}, "array"),
        (orjson.dumps([_object()] * 101), {}, "101 records; 100"),
        (orjson.dumps([_object()] * 3), {"most": 2}, "3 records; 2"),
        (orjson.dumps([_object()] * 3), {"max_bytes": 200}, "bytes"),
        (b"[" + _raw().replace(b"{}", b'{"a":1,"a":2}') + b"]", {}, "'a'"),
        (orjson.dumps([_object(), _object(data={"deep": _nested(63, {})})]), {}, "deep"),
    ],
)
def test_a_batch_that_cannot_be_read_is_refused_as_a_whole(
    raw: bytes, limits: dict[str, int], words: str
) -> None:
    with pytest.raises(MalformedError, match=words):
        wire.decode_batch(raw, **limits)


# Refusals, statuses, content types.


def test_a_refusal_finds_the_way_back_when_the_record_tells_it() -> None:
    problem = _refused(_raw(verb="help"))
    refusal = wire.refusal_of(problem, sender="brainstem_0123456789abcdef")
    assert (refusal.id, refusal.sender, refusal.recipient) == (
        ID,
        "brainstem_0123456789abcdef",
        "agent_b_7df3",
    )
    assert refusal.verb == "ERROR"
    assert refusal.data == {
        "code": 400,
        "msg": "'verb' is not an ALL-CAPS word.",
        "reason": "malformed",
        "do": "Send HELLO, HELP, DONE or ERROR.",
        "key": "verb",
    }
    assert wire.decode(wire.encode(refusal)) == refusal


@pytest.mark.parametrize("raw", [b"", b"[]", _raw(id="7", **{"from": "broadcast"}), b'{"id":{},"from":[1]}'])
def test_a_refusal_has_a_fresh_id_when_none_could_be_read(raw: bytes) -> None:
    first, second = (wire.refusal_of(_refused(raw), sender="desk_0") for _ in range(2))
    assert wire.is_uuid4(first.id)
    assert first.id != second.id
    assert first.recipient == "unknown"
    assert "key" not in first.data or first.data["key"] in ("id", "from", "to")
    assert wire.decode(wire.encode(first)) == first


def test_who_knows_better_says_where_a_refusal_goes() -> None:
    refusal = wire.refusal_of(_refused(_raw(to="")), id=ID.upper(), sender="desk_0", recipient="peer_1")
    assert (refusal.id, refusal.recipient) == (ID.upper(), "peer_1")
    assert wire.is_uuid4(wire.refusal_of(_refused(b""), id="none", sender="desk_0").id)
    assert wire.refusal_of(BadSignatureError("Too old."), sender="desk_0").data == {
        "code": 401,
        "msg": "Too old.",
        "reason": "bad_signature",
    }


@pytest.mark.parametrize(
    ("verb", "data", "status"),
    [
        ("DONE", {}, 200),
        ("HELLO", {"code": 500}, 200),
        ("STREAM", {}, 200),
        ("ACK", {}, 202),
        ("ERROR", {"code": 429}, 429),
        ("ERROR", {"code": 400}, 400),
        ("ERROR", {"code": 599}, 599),
        ("ERROR", {"code": 200}, 400),
        ("ERROR", {"code": -1}, 400),
        ("ERROR", {"code": 1 << 40}, 599),
        ("ERROR", {}, 500),
        ("ERROR", {"code": "404"}, 500),
        ("ERROR", {"code": True}, 500),
        ("ERROR", {"code": None}, 500),
    ],
)
def test_the_status_that_a_reply_travels_with(verb: str, data: dict[str, Any], status: int) -> None:
    assert wire.http_status(Envelope(ID, "a", "b", verb, data)) == status


@pytest.mark.parametrize(
    "header",
    [
        "application/json; charset=utf-8",
        "application/json",
        "Application/JSON;charset=UTF-8",
        ' application/json ; charset="utf-8" ',
    ],
)
def test_json_in_utf8_is_a_content_type(header: str) -> None:
    assert wire.is_content_type(header)


@pytest.mark.parametrize(
    "header",
    [
        None,
        "",
        "text/plain",
        "application/json; charset=utf-16",
        "application/json; charset=latin-1",
        "application/json; charset=",
        'application/json; charset="utf-8',
        "application/json; boundary=x",
        "application/json; charset=utf-8; charset=utf-16",
        "application/json, text/html",
        "application/jsonp",
        "application/problem+json",
        "text/json; application/json",
        "application/json\n",
    ],
)
def test_nothing_else_is(header: str | None) -> None:
    assert not wire.is_content_type(header)
