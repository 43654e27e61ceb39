from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins.cartridges.living_documents import objects, values
from twins.cartridges import json_documents, json_patch
from twins.cartridges.json_documents import MAX_DEPTH, canonical, encode, parse, same
from twins.errors import BadCartridgeError


@given(objects)
def test_what_is_written_is_read_back_and_written_the_same(document: dict[str, object]) -> None:
    octets = encode(document)
    assert same(parse(octets), document)
    assert encode(parse(octets)) == octets


def test_a_written_cartridge_reads_line_by_line_in_its_own_order() -> None:
    assert encode({"name": "Käthe", "b": [1, {}], "a": 0.5}).decode() == (
        '{\n  "name": "Käthe",\n  "b": [\n    1,\n    {}\n  ],\n  "a": 0.5\n}\n'
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"a": 1, "a": 1}', 'the key "a" twice'),
        (b'{"x": {"a": 1, "b": 2, "a": 3}}', 'the key "a" twice'),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": -Infinity}', "-Infinity"),
        (b'{"a": 1e999}', "too large"),
        (b'{"a": 18446744073709551616}', "more than 64 bits"),
        (b'{"a": ' + b"9" * 5000 + b"}", "more than 64 bits"),
        (b'{"a": "\\ud800"}', "half a character"),
        (b'{"\\uDfff": 1}', "half a character"),
        (b'{"a": 1}\n{"b": 2}', "line 2"),
        (b'{\n"a": 1,\n}', "line 3"),
        (b'{"a"', "line 1"),
        (b"[1]", "no object"),
        (b"", "line 1"),
        (b'{"a": "\xff"}', "not UTF-8"),
        (b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}", "too deep"),
        (b'{"a": ' + b"[" * MAX_DEPTH + b"]" * MAX_DEPTH + b"}", "too deep"),
    ],
)
def test_what_leaves_a_doubt_is_refused_with_its_reason(text: bytes, why: str) -> None:
    with pytest.raises(BadCartridgeError, match=r"^fluffy\.egg is damaged") as refused:
        parse(text, name="fluffy.egg")
    assert why in str(refused.value)
    assert "nothing was loaded" in str(refused.value)


def test_a_byte_order_mark_and_the_deepest_document_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    assert parse(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}
    deepest = b'{"a": ' + b"[" * (MAX_DEPTH - 1) + b"]" * (MAX_DEPTH - 1) + b"}"
    encode(parse(deepest))
    monkeypatch.setattr(json_documents, "MAX_BYTES", 10)
    with pytest.raises(BadCartridgeError, match="11 bytes"):
        parse(b'{"a": "12"}')


def test_what_could_not_be_read_back_is_not_written() -> None:
    deep: dict[str, object] = {}
    for _ in range(MAX_DEPTH):
        deep = {"a": deep}
    with pytest.raises(BadCartridgeError, match="levels"):
        encode(deep)
    with pytest.raises(BadCartridgeError, match="cannot be written"):
        encode({"a": "\ud800"})
    with pytest.raises(BadCartridgeError, match="cannot be written"):
        encode({"a": 1 << 70})


@given(st.binary(max_size=200) | st.text('{}[]",:\\u0dae1.-+ntf ', max_size=80).map(str.encode))
@settings(max_examples=300)
def test_bytes_are_either_read_or_refused(octets: bytes) -> None:
    try:
        found = parse(octets)
    except BadCartridgeError:
        return
    assert same(parse(encode(found)), found)


def test_json_knows_one_from_true_and_from_one_point_nought() -> None:
    assert not same(1, 1.0)
    assert not same(1, True)
    assert not same([0], [False])
    assert not same({"a": None}, {})
    assert same({"a": [1, {"b": 2.5}]}, {"a": [1, {"b": 2.5}]})


def test_canonical_json_keeps_letters_and_sorts_keys() -> None:
    assert canonical({"ü": 1, "a": [1.5, None], "A": "ß"}) == '{"A":"ß","a":[1.5,null],"ü":1}'.encode()


# Edits


@given(values, values)
@settings(max_examples=200)
def test_edits_lead_from_any_document_to_any_other(before: object, after: object) -> None:
    found = json_patch.between(before, after)
    assert same(json_patch.apply(found, before), after)
    assert bool(found) is not same(before, after)
    whole = json_patch.between(before, after, whole=lambda at, one, other: isinstance(one, list))
    assert same(json_patch.apply(whole, before), after)


def test_an_edit_that_no_longer_fits_gives_way() -> None:
    found = json_patch.between({"a": 1, "b": 2, "c": {"d": 3}}, {"a": 10, "c": {"d": 3, "e": 4}})
    assert json_patch.apply(found, {"a": 5, "b": 3, "c": {"d": 9}}) == {"a": 5, "b": 3, "c": {"d": 9, "e": 4}}
    assert json_patch.apply(found, {"a": 1, "b": 2, "c": "gone"}) == {"a": 10, "c": "gone"}
    assert json_patch.apply(found, "something else") == "something else"


def test_list_additions_merge_also_when_it_grew() -> None:
    found = json_patch.between({"m": ["a"]}, {"m": ["a", "kept"]})
    assert json_patch.apply(found, {"m": ["a", "new"]}) == {"m": ["a", "new", "kept"]}
    whole = json_patch.between({"m": ["a"]}, {"m": ["kept", "a"]}, whole=lambda at, one, other: True)
    assert json_patch.apply(whole, {"m": ["a", "new"]}) == {"m": ["a", "new"]}  # the root was another one
    inner = json_patch.between({"m": ["a"]}, {"m": ["kept", "a"]}, whole=lambda at, one, other: bool(at))
    assert json_patch.apply(inner, {"m": ["a", "new"]}) == {"m": ["a", "new", "kept"]}


def test_edits_read_as_lines() -> None:
    before = {"stats": {"snark": 81}, "memory": ["a"], "code": "x"}
    after = {"stats": {"snark": 99}, "memory": ["a", {"text": "y" * 80}]}
    assert json_patch.lines(json_patch.between(before, after)) == [
        'code removed: "x"',
        'memory[1] added: {"text":"' + "y" * 48 + "…",
        "stats.snark: 81 → 99",
    ]
    assert json_patch.lines(json_patch.between(1, "1")) == ['everything: 1 → "1"']


@pytest.mark.parametrize(
    "broken",
    [
        {},
        [1],
        [{"at": ["a"]}],
        [{"was": 1, "is": 2}],
        [{"at": "a", "is": 1}],
        [{"at": [1.5], "is": 1}],
        [{"at": [True], "is": 1}],
        [{"at": [-1], "is": 1}],
        [{"at": ["a"], "is": 1, "do": 2}],
    ],
)
def test_what_are_no_edits_is_refused(broken: object) -> None:
    with pytest.raises(ValueError, match="edit"):
        json_patch.apply(broken, {})  # type: ignore[arg-type]
