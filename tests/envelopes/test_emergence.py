from __future__ import annotations

import uuid
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.codecs import emergence
from envelopes.envelope import Envelope
from envelopes.errors import MalformedError

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
ENVELOPES = st.builds(
    Envelope,
    st.uuids(version=4).map(str),
    st.text(min_size=1),
    st.text(min_size=1),
    st.sampled_from(["HELLO", "HELP", "DONE", "ERROR", "STREAM"]),
    st.dictionaries(st.text(), JSON, max_size=5),
    st.dictionaries(st.text().map(lambda text: f"_x_{text}"), JSON, max_size=4),
)


@given(ENVELOPES)
def test_a_record_comes_back_as_it_went(envelope: Envelope) -> None:
    assert emergence.decode(emergence.encode(envelope)) == envelope


def _object(**changes: Any) -> dict[str, Any]:
    base: dict[str, Any] = {"id": str(uuid.uuid4()), "from": "a", "to": "b", "verb": "HELP", "data": {}}
    return {key: value for key, value in {**base, **changes}.items() if value is not ...}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"id": ...}, "'id'"),
        ({"from": ...}, "'from'"),
        ({"to": ...}, "'to'"),
        ({"verb": ...}, "'verb'"),
        ({"data": ...}, "'data'"),
        ({"id": "7"}, "'id'"),
        ({"id": 7}, "'id'"),
        ({"from": ""}, "'from'"),
        ({"to": None}, "'to'"),
        ({"verb": "help"}, "'verb'"),
        ({"verb": "HÉLP"}, "'verb'"),
        ({"verb": 5}, "'verb'"),
        ({"data": []}, "'data'"),
        ({"data": None}, "'data'"),
        ({"extra": 1}, "'extra'"),
        ({"x_thread": 1}, "'x_thread'"),
    ],
)
def test_a_malformed_record_is_refused_with_the_key_named(changes: dict[str, Any], named: str) -> None:
    with pytest.raises(MalformedError, match=named):
        emergence.decode(orjson.dumps(_object(**changes)))


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b"\xff", b'{"id":', b'"text"', b"NaN"])
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(MalformedError):
        emergence.decode(raw)


def test_size_and_depth_have_limits() -> None:
    deep: dict[str, Any] = {}
    for _ in range(emergence.MAX_DEPTH):
        deep = {"d": deep}
    with pytest.raises(MalformedError, match="deep"):
        emergence.decode(orjson.dumps(_object(data=deep)))
    with pytest.raises(MalformedError, match="bytes"):
        emergence.decode(orjson.dumps(_object(data={"text": "x" * emergence.MAX_BYTES})))


def _deep(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(levels - 1):
        found = {"d": found}
    return found


@pytest.mark.parametrize("levels", [64, 65, 300, 2000])
def test_nothing_is_written_that_is_too_deep_to_be_read(levels: int) -> None:
    envelope = Envelope(str(uuid.uuid4()), "a", "b", "DONE", _deep(levels))
    with pytest.raises(MalformedError) as caught:
        emergence.encode(envelope)
    assert caught.value.key == "data"
    with pytest.raises(MalformedError, match="deep"):
        emergence.from_object(emergence.as_object(envelope))


def test_the_deepest_that_is_written_is_read() -> None:
    data = {"d": _deep(62), "wide": [[[]]] * 200, "text": '[{"' * 500 + "\\"}
    envelope = Envelope(str(uuid.uuid4()), "a", "b", "DONE", data)
    assert emergence.decode(emergence.encode(envelope)) == envelope


@pytest.mark.parametrize("value", [{1, 2}, {1: 2}, "\ud800", 1 << 64])
def test_what_is_no_json_is_not_written(value: Any) -> None:
    with pytest.raises(MalformedError, match="data"):
        emergence.encode(Envelope(str(uuid.uuid4()), "a", "b", "DONE", {"value": value}))


def test_a_refusal_carries_the_key() -> None:
    with pytest.raises(MalformedError) as caught:
        emergence.decode(orjson.dumps(_object(verb="help")))
    assert caught.value.key == "verb"
    with pytest.raises(MalformedError) as caught:
        emergence.decode(orjson.dumps(_object(extra=1)))
    assert caught.value.key == "extra"


def test_a_reply_keeps_id_and_thread_and_turns_the_direction() -> None:
    asked = Envelope(str(uuid.uuid4()), "caller", "worker", "HELP", {}, {"_x_thread": "t", "_x_cap": "c"})
    reply = asked.reply("DONE", {"result": 1})
    assert (reply.id, reply.sender, reply.recipient, reply.thread) == (asked.id, "worker", "caller", "t")
    assert "_x_cap" not in reply.extensions
    refusal = asked.refusal(404, "No such agent.", "not_found")
    assert refusal.verb == "ERROR"
    assert refusal.data == {"code": 404, "msg": "No such agent.", "reason": "not_found"}
