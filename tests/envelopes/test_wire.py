"""The wire between machines: exactly the records of the Rulebook, and a refusal for everything else."""

from __future__ import annotations

import json
import math
import uuid
from typing import Any

import orjson
import pytest

from envelopes.codecs import wire
from envelopes.envelope import Envelope
from envelopes.errors import MalformedError

ID = "550e8400-e29b-41d4-a716-446655440000"
HEX = "0123456789abcdef"
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
SIGNATURE = {"alg": "Ed25519", "kid": HEX * 4, "key": HEX * 4, "t": 1_800_000_000, "s": HEX * 8}


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


# What is taken.


def test_the_example_of_the_rulebook_is_taken() -> None:
    raw = (
        b'{"id": "550e8400-e29b-41d4-a716-446655440000", "from": "agent_b_7df3", "to": "agent_a_912c",'
        b' "verb": "HELP", "data": {"prompt": "Translate hello to French"}}'
    )
    envelope = wire.decode(raw)
    assert envelope == Envelope(
        ID, "agent_b_7df3", "agent_a_912c", "HELP", {"prompt": "Translate hello to French"}
    )
    assert orjson.loads(wire.encode(envelope)) == orjson.loads(raw)


@pytest.mark.parametrize(
    "changes",
    [
        {"id": ID.upper()},
        {"to": "broadcast"},
        {"from": "x", "to": "y" * 200},
        {"from": "Köchin_0123456789abcdef"},
        {"verb": "TRANSLATE"},
        {"data": {"deep": _nested(62, {}), "list": _nested(62, [])}},
        {"data": {'a":"b': '{"a":[', "\\": '\\"{[', "a:a:": ":"}},
        {"_x_thread": "5cd83448-232a-523f-8098-5b4c1915476a"},
        {"_x_deadline": 0.25},
        {"_x_deadline": 3600},
        {"_x_ttl": 0},
        {"_x_path": []},
        {"_x_path": [HEX] * 16},
        {"_x_traceparent": TRACE},
        {"_x_traceparent": "cc" + TRACE[2:] + "-what-comes-later"},
        {"_x_sig": SIGNATURE},
        {"_x_cap": "one.jwt.here"},
        {"_x_cap": ["root.jwt.here", "child.jwt.here"]},
        {"_x_usage_tokens": 12, "_x_cost_usd": 0.0031},
        {"_x_slush": None, "_x_": 0, "_x_whatever": [{"a": [1.5, None]}], "_x_é": "unknown keys travel on"},
    ],
)
def test_what_is_taken_goes_out_as_it_came(changes: dict[str, Any]) -> None:
    envelope = wire.decode(_raw(**changes))
    assert wire.encode(envelope) == orjson.dumps(_object(**changes))
    assert wire.decode(wire.encode(envelope)) == envelope


def test_a_key_written_in_escapes_is_the_same_key() -> None:
    raw = _raw(data={"a": ":"}).replace(b'":"', b'"\\u003a"').replace(b'"verb"', b'"\\u0076erb"')
    assert wire.decode(raw).data == {"a": ":"}


# What is refused.


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("id", value) for value in (..., "7", 7, None, "", ID[:-1], ID + "\n", "{" + ID + "}", "x" + ID[1:])),
        ("id", str(uuid.uuid1())),
        ("id", str(uuid.uuid5(uuid.NAMESPACE_DNS, "a"))),
        ("id", ID[:19] + "c" + ID[20:]),  # another variant
        ("id", ID.replace("5", "٥")),  # digits, but not ASCII
        *(("from", value) for value in (..., "", None, 7, "x" * 201, "broadcast", ["a"])),
        *(("to", value) for value in (..., "", None, {}, "x" * 201)),
        *(("to", f"a{mark}b") for mark in (" ", "\t", "\n", "\r", "\x00", "\x7f", "\u00a0", "\u202e", "\u200b")),
        ("from", " a"),
        *(("verb", value) for value in (..., "help", "Help", "", "HELP ", "HELP\n", "HÉLP", "A_B", 5, None)),
        ("verb", "A" * 33),
        *(("data", value) for value in (..., [], None, "text", 1)),
        ("extra", 1),
        ("x_thread", "t"),
        ("_X_thread", "t"),
        ("", 0),
        *(("_x_thread", value) for value in (1, None, "t", "")),
        *(("_x_deadline", value) for value in (0, -1, 3600.1, "30", True, None)),
        *(("_x_ttl", value) for value in (-1, "60", False, None)),
        *(("_x_path", value) for value in (HEX, [HEX] * 17, [HEX[:-1]], [HEX.upper()], [1], [HEX + "\n"], None)),
        *(("_x_cap", value) for value in ("", [], [""], [1], 7, {}, None)),
        *(("_x_usage_tokens", value) for value in (-1, "12", True, None, {})),
        *(("_x_cost_usd", value) for value in (-0.1, "0", None)),
        *(("_x_traceparent", value) for value in (7, "", TRACE.upper(), TRACE + "-00", TRACE[:-1], "ff" + TRACE[2:])),
        ("_x_traceparent", f"00-{'0' * 32}-b7ad6b7169203331-01"),
        ("_x_traceparent", f"00-0af7651916cd43dd8448eb211c80319c-{'0' * 16}-01"),
        *(
            ("_x_sig", {**SIGNATURE, **change})
            for change in (
                {"alg": "none"},
                {"kid": HEX * 4 + "0"},
                {"key": HEX.upper() * 4},
                {"t": 1.5},
                {"t": True},
                {"t": -1},
                {"s": HEX * 4},
                {"more": 1},
            )
        ),
        *(("_x_sig", value) for value in (None, [], "sig", {})),
    ],
)  # fmt: skip
def test_the_refusal_names_the_key(key: str, value: Any) -> None:
    problem = _refused(_raw(**{key: value}))
    assert problem.key == key
    assert f"'{key}'" in str(problem)
    assert problem.do


@pytest.mark.parametrize("key", ["id", "from", "to", "verb", "data", "_x_thread", "_x_foreign"])
@pytest.mark.parametrize("spelled", ["plain", "escaped"])
def test_a_key_that_comes_twice_is_refused(key: str, spelled: str) -> None:
    again = key if spelled == "plain" else f"\\u{ord(key[0]):04x}{key[1:]}"
    value = json.dumps(_object(_x_thread=ID, _x_foreign=":")[key])
    raw = _raw(_x_thread=ID, _x_foreign=":")[:-1] + f', "{again}": {value}}}'.encode()
    assert json.loads(raw) == _object(_x_thread=ID, _x_foreign=":"), "other readers would take it"
    problem = _refused(raw)
    assert problem.key == key
    assert f"'{key}'" in str(problem)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":1}',
        b'{"list":[{"deep":{"a":0,"b":{},"a":0}}]}',
        b'{"a":"x","a":"\\u003a"}',
        b'{"a":"\\u003A\\u003a","a":":","b":"\\\\"}',
        b'{"a\\"":1,"a\\"":2}',
    ],
)
def test_a_key_that_comes_twice_anywhere_is_refused(data: bytes) -> None:
    assert _refused(_raw().replace(b"{}", data)).key in ("a", 'a"')


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b'"text"',
        b"\xef\xbb\xbf" + _raw(),
        _raw().decode().encode("utf-16"),
        _raw() + b"x",
        _raw() + _raw(),
        _raw() + b"\x00",
        _raw()[:-1],
        _raw()[:-1] + b",}",
        _raw().replace(b"{}", b'{"a": NaN}'),
        _raw().replace(b"{}", b'{"a": -Infinity}'),
        _raw().replace(b"{}", b'{"a": 1e400}'),
        _raw().replace(b"{}", b'{"a": 01}'),
        _raw().replace(b"{}", b'{"a": "\\ud800"}'),
        _raw().replace(b"{}", b'{"a": "\xed\xa0\x80"}'),
        _raw().replace(b"{}", b'{"a": "\xff"}'),
        _raw().replace(b"{}", b"{'a': 1}"),
        _raw().replace(b"{}", b"{} /* c */"),
    ],
)
def test_what_is_no_json_object_in_utf8_is_refused(raw: bytes) -> None:
    assert _refused(raw).code == "malformed"


def test_size_has_a_limit() -> None:
    raw = _raw(data={"text": "x" * 2000})
    assert wire.decode(raw, max_bytes=len(raw)).data == {"text": "x" * 2000}
    assert "bytes" in str(_refused(raw, max_bytes=len(raw) - 1))
    assert "bytes" in str(_refused(_raw(data={"text": "x" * wire.MAX_BYTES})))


@pytest.mark.parametrize("empty", [{}, []])
def test_depth_has_a_limit(empty: Any) -> None:
    assert wire.decode(_raw(data={"d": _nested(62, empty)}))
    assert "64 deep" in str(_refused(_raw(data={"d": _nested(63, empty)})))
    wide = [_nested(30, [])] * 50
    assert wire.decode(_raw(data={"wide": wide, "text": "[{" * 100 + '"\\'})).data["wide"] == wide
    with pytest.raises(MalformedError, match="deep"):
        wire.encode(Envelope(ID, "a", "b", "DONE", {"wide": wide, "d": _nested(63, empty)}))


@pytest.mark.parametrize(
    "beside",
    [
        [[]] * 3000,
        [[[]], {}] * 3000,
        [_nested(9, {}), _nested(40, [])] * 20,
        ["\\", '"', '\\"', "[[[", '\\\\"{', "]"] * 50,
        [{"\\": "\\", '"[': "]"}] * 50,
    ],
)
def test_depth_is_told_whatever_stands_beside(beside: list[Any]) -> None:
    for deep in (_nested(62, []), _nested(62, {})):
        for data in ({"a": beside, "b": [deep]}, {"b": [deep], "a": beside}):
            assert "64 deep" in str(_refused(_raw(data=data)))
            assert wire.decode(_raw(data={**data, "b": deep})).data["a"] == beside


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * wire.MAX_BYTES,
        b'{"a":' * (wire.MAX_BYTES // 5),
        _raw().replace(b"{}", b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
        _raw().replace(b"{}", b'{"a":[' + b",".join([b"[" * 65 + b"]" * 65] * 5000) + b"]}"),
        _raw().replace(b"{}", b"{" + b",".join([b'"a":0'] * 100_000) + b"}"),
        b'"' * wire.MAX_BYTES,
        b'"' + b"\\" * (wire.MAX_BYTES - 1),
    ],
    ids=["open lists", "open objects", "deep", "deep and wide", "one key", "quotes", "backslashes"],
)
def test_hostile_bytes_are_only_refused(raw: bytes) -> None:
    assert _refused(raw).status == 400


def test_a_foreign_key_is_not_repeated_at_length() -> None:
    problem = _refused(_raw(**{"k" * 5000: 1}))
    assert len(str(problem)) < 200
    assert "\x1b" not in str(_refused(_raw(**{"\x1b[31m": 1})))
    assert len(wire.encode(wire.refusal_of(problem, sender="desk_0"))) < 500


# What is sent.


@pytest.mark.parametrize(
    ("envelope", "key"),
    [
        (Envelope("7", "a", "b", "HELP", {}), "id"),
        (Envelope(str(uuid.uuid1()), "a", "b", "HELP", {}), "id"),
        (Envelope(ID, "a b", "b", "HELP", {}), "from"),
        (Envelope(ID, "a", "", "HELP", {}), "to"),
        (Envelope(ID, "a", "b", "help", {}), "verb"),
        (Envelope(ID, "a", "b", "HELP", {}, {"note": 1}), "note"),
        (Envelope(ID, "a", "b", "HELP", {}, {"id": "another"}), "id"),
        (Envelope(ID, "a", "b", "HELP", {}, {"_x_deadline": -1}), "_x_deadline"),
        (Envelope(ID, "a", "b", "HELP", {"a": {1, 2}}), "data"),
        (Envelope(ID, "a", "b", "HELP", {"a": {1: 2}}), "data"),
        (Envelope(ID, "a", "b", "HELP", {"a": "\ud800"}), "data"),
        (Envelope(ID, "a", "b", "HELP", {"a": 1 << 64}), "data"),
        (Envelope(ID, "a", "b", "HELP", {"a": [1, (math.nan,)]}), "data"),
        (Envelope(ID, "a", "b", "HELP", {"null": None}, {"_x_more": {"a": math.inf}}), "data"),
        (Envelope(ID, "a", "b", "HELP", {"a": _nested(64, [])}), "data"),
        (Envelope(ID, "a", "b", "HELP", {"a": _nested(500, [])}), "data"),
    ],
)
def test_nothing_is_sent_that_would_not_be_taken(envelope: Envelope, key: str) -> None:
    with pytest.raises(MalformedError) as caught:
        wire.encode(envelope)
    assert caught.value.key == key


def test_what_is_sent_has_the_size_that_is_taken() -> None:
    with pytest.raises(MalformedError, match="bytes"):
        wire.encode(Envelope(ID, "a", "b", "DONE", {"text": "x" * wire.MAX_BYTES}))


def test_null_and_its_letters_are_sent() -> None:
    data = {"a": None, "null": ["null", 1.5, (None,)]}
    assert wire.decode(wire.encode(Envelope(ID, "a", "b", "DONE", data))).data == json.loads(json.dumps(data))
