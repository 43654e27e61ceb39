"""Canonical JSON against the examples of RFC 8785 and the published egg hash."""

from __future__ import annotations

import datetime
import enum
import hashlib
import json
import math
import struct
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.codecs.canonical import canonical


class Colour(enum.Enum):
    RED = "red"


def test_the_example_of_the_rfc() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"\u002f",
        "literals": [None, True, False],
    }
    assert canonical(value).decode() == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


@pytest.mark.parametrize(
    ("bits", "text"),
    [  # RFC 8785, appendix B
        ("0000000000000000", "0"),
        ("8000000000000000", "0"),
        ("0000000000000001", "5e-324"),
        ("8000000000000001", "-5e-324"),
        ("7fefffffffffffff", "1.7976931348623157e+308"),
        ("4340000000000000", "9007199254740992"),
        ("c340000000000000", "-9007199254740992"),
        ("4430000000000000", "295147905179352830000"),
        ("44b52d02c7e14af5", "9.999999999999997e+22"),
        ("44b52d02c7e14af6", "1e+23"),
        ("44b52d02c7e14af7", "1.0000000000000001e+23"),
        ("444b1ae4d6e2ef4e", "999999999999999700000"),
        ("444b1ae4d6e2ef50", "1e+21"),
        ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
        ("3eb0c6f7a0b5ed8d", "0.000001"),
        ("41b3de4355555555", "333333333.3333333"),
        ("becbf647612f3696", "-0.0000033333333333333333"),
        ("43143ff3c1cb0959", "1424953923781206.2"),
    ],
)
def test_numbers_as_the_rfc_prints_them(bits: str, text: str) -> None:
    (number,) = struct.unpack(">d", bytes.fromhex(bits))
    assert canonical(number).decode() == text
    assert canonical({"n": [number]}).decode() == f'{{"n":[{text}]}}'


def test_keys_are_sorted_by_utf16_units() -> None:
    keys = ["\u20ac", "\r", "\ufb33", "1", "\U0001f600", "\u0080", "\u00f6"]
    found = list(json.loads(canonical(dict.fromkeys(keys, 0))))
    assert found == ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\U0001f600", "\ufb33"]


def test_the_published_hash_of_an_egg() -> None:
    manifest = {
        "schema": "rapp/1-egg",
        "variant": "session",
        "rappid": "rappid:@example/node:" + "a" * 64,
        "created_utc": "2026-01-01T00:00:00.000Z",
        "contents": [],
        "payload": {"runtime": "r", "transcript": []},
    }
    digest = hashlib.sha256(b"rapp/1:egg-manifest\n" + canonical(manifest)).hexdigest()
    assert digest == "8d6817086f6df86b9894b528b7b8c741f2e22591e7b698534343b856247e1f73"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"b": 1, "a": [1.0, 1]}, '{"a":[1,1],"b":1}'),
        ({"a": 1e-7, "b": 1e21, "c": 1e20, "d": 1e16}, '{"a":1e-7,"b":1e+21,"c":100000000000000000000,"d":10000000000000000}'),
        ({"a": 0.00001, "b": 0.0001, "c": -0.0, "d": 0.5}, '{"a":0.00001,"b":0.0001,"c":0,"d":0.5}'),
        ({"a": 0.0000015}, '{"a":0.0000015}'),
        ({"a": 9007199254740993, "b": 18446744073709551616}, '{"a":9007199254740992,"b":18446744073709552000}'),
        ({"\U0001f600": 1, "\ufb33": 2}, '{"\U0001f600":1,"\ufb33":2}'),
        ({"x": {"\ue000": 1, "\U00010000": 2, "a": 3}}, '{"x":{"a":3,"\U00010000":2,"\ue000":1}}'),
        ({"smile": "\U0001f600", "\uff00": 2, "a": "1e5, 1.0"}, '{"a":"1e5, 1.0","smile":"\U0001f600","\uff00":2}'),
        ((1, (2, {})), "[1,[2,{}]]"),
        ({"a": (), "b": {}}, '{"a":[],"b":{}}'),
        (1.0, "1"),
        ("\x7f\x1f\u2028", '"\x7f\\u001f\u2028"'),
    ],
)  # fmt: skip
def test_numbers_and_keys_inside_of_values(value: object, text: str) -> None:
    assert canonical(value).decode() == text


def test_the_short_way_and_the_long_way_say_the_same() -> None:
    plain = {"z": [1, 0.25, "text", None, True], "a": {"é": "\u20ac", "b": {}}}
    for added, text in (({"f": 2.0}, b',"f":2'), ({"g": 1 << 70}, b',"g":1.1805916207174113e+21')):
        assert canonical({**plain, **added}) == canonical(plain).replace(b',"z"', text + b',"z"')


@pytest.mark.parametrize(
    "value", [uuid.uuid4(), [uuid.uuid4()], {"a": Colour.RED}, {"a": datetime.date.today()}, {1: 2}, b"", {"a": math.nan}]
)  # fmt: skip
def test_what_only_python_knows_has_no_form(value: object) -> None:
    with pytest.raises(ValueError, match="JSON"):
        canonical(value)


def test_a_circle_has_no_form() -> None:
    circle: dict[str, object] = {}
    circle["a"] = circle
    with pytest.raises(ValueError, match=r"."):
        canonical(circle)


@pytest.mark.parametrize("value", [math.nan, math.inf, "\ud800", {"\udfff": 1}, {1, 2}, 10**400])
def test_what_json_cannot_say(value: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_alone_and_inside_is_written_alike(number: float) -> None:
    text = canonical(number)
    assert canonical([number]) == b"[%b]" % text
    assert float(text) == number
    assert not text.endswith(b".0")


@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 9)))
def test_keys_have_the_order_of_utf16(value: dict[str, int]) -> None:
    assert list(json.loads(canonical(value))) == sorted(value, key=lambda key: key.encode("utf-16-be"))


_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=20,
)


@given(_values)
def test_it_says_the_same_value_and_has_one_form(value: object) -> None:
    octets = canonical(value)
    again = json.loads(octets, parse_int=float)  # every number is a binary64
    assert again == value
    assert canonical(again) == octets
