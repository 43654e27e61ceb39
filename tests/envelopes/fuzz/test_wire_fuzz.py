"""Any bytes: the wire's readers give a record that goes out as it came, or refuse. Nothing else."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from envelopes.codecs import wire
from envelopes.codecs.strict_json import deeper_than, repeated_key, says_a_key_twice
from envelopes.envelope import Envelope
from envelopes.errors import MalformedError

_spec = importlib.util.spec_from_file_location("wire_target", Path(__file__).with_name("wire_target.py"))
assert _spec is not None
assert _spec.loader is not None
_target = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_target)
one_input = _target.one_input

_NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_KEYS = st.text(max_size=6) | st.sampled_from(["a", "id", "data", "_x_thread", '"', "\\", ":", "{["])
_JSON = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=4),
    max_leaves=12,
)
_IDS = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=20)
_EXTENSIONS = st.dictionaries(
    st.sampled_from(["_x_thread", "_x_deadline", "_x_ttl", "_x_path", "_x_sig", "_x_cap", "_x_traceparent"])
    | st.text(max_size=6).map(lambda text: f"_x_{text}"),
    _JSON | st.uuids().map(str),
    max_size=3,
)
_OBJECTS = st.builds(
    lambda id, sender, to, verb, data, more: {
        "id": id, "from": sender, "to": to, "verb": verb, "data": data, **more
    },
    st.uuids(version=4).map(str),
    _IDS.filter(lambda text: text != "broadcast"),
    _IDS | st.just("broadcast"),
    st.sampled_from(["HELLO", "HELP", "DONE", "ERROR", "STREAM", "CANCEL", "ACK"]),
    st.dictionaries(_KEYS, _JSON, max_size=4),
    st.dictionaries(st.text(max_size=6).map(lambda text: f"_x_f{text}"), _JSON, max_size=3),
)  # fmt: skip
_TEXTS = st.builds(
    lambda found, ascii, indent: json.dumps(found, ensure_ascii=ascii, indent=indent).encode(),
    _OBJECTS | st.lists(_OBJECTS, max_size=3),
    st.booleans(),
    st.sampled_from([None, 1]),
)


@given(_OBJECTS)
def test_what_the_rules_allow_is_taken(found: dict[str, Any]) -> None:
    raw = json.dumps(found).encode()
    envelope = wire.decode(raw)
    assert (envelope.id, envelope.sender, envelope.recipient) == (found["id"], found["from"], found["to"])
    assert envelope.data.keys() == found["data"].keys()
    one_input(raw)


@given(st.binary() | st.text().map(str.encode) | _JSON.map(lambda found: json.dumps(found).encode()))
@example(b"")
@example(b"[")
@example(b'{"id":')
@example(b"[" * 2000)
@example(b"[" * 2000 + b"]" * 2000)
@example(b'"' * 999)
def test_any_bytes(raw: bytes) -> None:
    one_input(raw)


@settings(max_examples=100)
@given(_TEXTS, st.data())
def test_records_with_bytes_changed(raw: bytes, draw: st.DataObject) -> None:
    changed = bytearray(raw)
    for _ in range(draw.draw(st.integers(1, 4))):
        at = draw.draw(st.integers(0, len(changed)))
        until = draw.draw(st.integers(at, min(at + 8, len(changed))))
        changed[at:until] = draw.draw(
            st.binary(max_size=4)
            | st.sampled_from([b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"null", b"\\u003a", b"\xf0"])
        )
    one_input(bytes(changed))


@settings(max_examples=100)
@given(_OBJECTS, st.data())
def test_records_with_keys_changed(found: dict[str, Any], draw: st.DataObject) -> None:
    for _ in range(draw.draw(st.integers(1, 3))):
        key = draw.draw(st.sampled_from([*found, "", "_x_", "extra"]))
        if draw.draw(st.booleans()):
            found.pop(key, None)
        else:
            found[key] = draw.draw(_JSON | _IDS | st.sampled_from([0.5, "help", "HELP", [], {}]))
    found.update(draw.draw(_EXTENSIONS))
    one_input(json.dumps(found).encode())


@given(_JSON, st.sampled_from([None, 1]), st.integers(0, 6))
def test_depth_is_told_from_the_bytes(found: Any, indent: int | None, limit: int) -> None:
    raw = json.dumps(found, indent=indent).encode()
    assert deeper_than(raw, limit) == (_depth(found) > limit)


@given(st.dictionaries(_KEYS, _JSON, min_size=1, max_size=4), st.data())
def test_a_second_key_is_noticed_and_a_first_never(found: dict[str, Any], draw: st.DataObject) -> None:
    raw = json.dumps(found, ensure_ascii=False).encode()
    read = json.loads(raw)
    assert not says_a_key_twice(raw, read)
    assert repeated_key(raw) == ""
    key = draw.draw(st.sampled_from(list(read)))
    spelled = json.dumps(key, ensure_ascii=draw.draw(st.booleans()))
    if draw.draw(st.booleans()) and key:
        spelled = '"' + "".join(f"\\u{unit:04x}" for unit in _units(key)) + '"'
    twice = raw[:-1] + f", {spelled}: {json.dumps(draw.draw(_JSON))}}}".encode()
    assert says_a_key_twice(twice, json.loads(twice))
    assert repeated_key(twice) == key


@given(st.builds(Envelope, st.uuids(version=4).map(str), _IDS, _IDS, st.just("DONE"), st.dictionaries(_KEYS, _JSON), _EXTENSIONS))  # fmt: skip
def test_what_is_written_is_taken(envelope: Envelope) -> None:
    try:
        raw = wire.encode(envelope)
    except MalformedError:
        return
    assert wire.decode(raw) == envelope


def _depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(_depth, value.values()), default=0)
    return 1 + max(map(_depth, value), default=0) if isinstance(value, list) else 0


def _units(text: str) -> list[int]:
    octets = text.encode("utf-16-be")
    return [int.from_bytes(octets[at : at + 2], "big") for at in range(0, len(octets), 2)]
