"""Printed values read back, encoded values come back, numbers are the same on every runtime."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents.runtimes.lispy import float_math
from agents.runtimes.lispy.conversion import from_plain, to_plain
from agents.runtimes.lispy.errors import BadValueError, LispyError
from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.machine import Machine
from agents.runtimes.lispy.number_format import decimal, whole
from agents.runtimes.lispy.printer import printed
from agents.runtimes.lispy.reader import read
from agents.runtimes.lispy.value_codec import from_wire, to_wire
from agents.runtimes.lispy.values import Pair, Symbol

TEXTS = st.text(st.characters(blacklist_categories=["Cs"]), max_size=20)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
ATOMS = st.none() | st.booleans() | st.integers() | FLOATS | TEXTS
NAMES = st.text(st.sampled_from("abcxyz-+*/?!<=>é😀λ"), min_size=1, max_size=8).filter(
    lambda name: name[0] not in "+-" or len(name) == 1
)
SYMBOLS = NAMES.map(Symbol)
FORMS = st.recursive(ATOMS | SYMBOLS, lambda inner: st.lists(inner, max_size=5), max_leaves=30)
VALUES = st.recursive(
    ATOMS | SYMBOLS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.builds(Pair, inner, inner)
        | st.dictionaries(TEXTS, inner, max_size=4)
    ),
    max_leaves=30,
)
PLAIN = st.recursive(
    ATOMS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def same(a: Any, b: Any) -> bool:
    """Equal in value and in kind, all the way down; 0.0 and -0.0 differ."""
    if type(a) is not type(b):
        return False
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Pair):
        return same(a.car, b.car) and same(a.cdr, b.cdr)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return repr(a) == repr(b)


@given(st.lists(FORMS, max_size=4))
def test_printed_forms_read_back(forms: list[Any]) -> None:
    source = " ".join(printed(form, 100_000) for form in forms)
    assert same(read(source, Limits()), as_read(forms))


def as_read(value: Any) -> Any:
    """Nil is printed as (), which is read as an empty list."""
    if value is None:
        return []
    return [as_read(item) for item in value] if isinstance(value, list) else value


@given(TEXTS, TEXTS)
def test_reading_never_does_anything_but_read(text: str, more: str) -> None:
    for source in (text, f'("{text}" {more}', f"'({text})"):
        try:
            read(source, Limits(max_reader_depth=5))
        except LispyError as fault:
            assert fault.category in ("syntax", "resource-limit")


@given(VALUES)
def test_wire(value: Any) -> None:
    wire = to_wire(value)
    assert same(from_wire(json.loads(json.dumps(wire))), value)
    assert to_wire(from_wire(wire)) == wire


@given(VALUES)
def test_a_value_in_a_machine_survives_freezing(value: Any) -> None:
    machine = Machine("(list given (next-input))", inputs=[value], bindings={"given": value})
    text = machine.freeze_text()
    thawed = Machine.thaw(json.loads(text))
    assert thawed.freeze_text() == text
    assert same(thawed.run().value, [value, value])


@given(PLAIN)
def test_json_values_from_and_to_python(value: Any) -> None:
    assert same(to_plain(from_plain(value)), value)


@given(PLAIN)
def test_json_text_inside_the_language(value: Any) -> None:
    outcome = Machine(
        "(define text (json-dump given)) (list text (json-parse text))", bindings={"given": value}
    ).run()
    text, parsed = outcome.value
    assert json.loads(text) == value
    assert same(parsed, value)


@given(st.text(st.sampled_from('[]{}:,"\\ ntu0123456789.eE+-truefalsnl\x01é'), max_size=30))
def test_json_is_taken_exactly_where_it_is_json(text: str) -> None:
    try:
        is_json = is_sound(json.loads(text, parse_constant=refuse))
    except ValueError:
        is_json = False
    outcome = Machine("(json-parse text)", bindings={"text": text}).run()
    assert outcome.ok is is_json, outcome.fault


def refuse(name: str) -> Any:
    raise ValueError(name)


def is_sound(value: Any) -> bool:
    """Python's reader takes numbers beyond floats, and halves of characters."""
    if isinstance(value, list):
        return all(map(is_sound, value))
    if isinstance(value, dict):
        return all(map(is_sound, value.values()))
    if isinstance(value, str):
        return not any("\ud800" <= letter <= "\udfff" for letter in value)
    return not isinstance(value, float) or math.isfinite(value)


@pytest.mark.parametrize(
    "wire",
    [
        None,
        [],
        {},
        {"tag": "integer", "value": 3},
        {"tag": "integer", "value": "03"},
        {"tag": "integer", "value": "1_0"},
        {"tag": "integer", "value": "+1"},
        {"tag": "float64", "bits": "7ff8000000000000"},
        {"tag": "float64", "bits": "3FF0000000000000"},
        {"tag": "float64", "bits": "３ff0000000000000"},
        {"tag": "nil", "value": None},
        {"tag": "boolean", "value": 1},
        {"tag": "string", "value": "\ud800"},
        {"tag": "list", "items": [{"tag": "nil"}], "more": 1},
        {"tag": "map", "entries": [[{"tag": "symbol", "value": "a"}, {"tag": "nil"}]]},
        {"tag": "map", "entries": [[{"tag": "string", "value": "a"}, {"tag": "nil"}]] * 2},
        {"tag": "procedure"},
    ],
)
def test_what_is_no_wire_value(wire: Any) -> None:
    with pytest.raises(BadValueError):
        from_wire(wire)


def test_a_map_goes_over_the_wire_in_order_of_its_keys() -> None:
    wire = to_wire({"b": 1, "é": 2, "a b": 3, "a": 4})
    assert [key["value"] for key, _ in wire["entries"]] == ["a b", "a", "b", "é"]


@given(st.integers(-(10**4000), 10**4000))
def test_long_integers_as_text(number: int) -> None:
    text = decimal(number)
    assert whole(text) == number
    assert text.lstrip("-").isdigit() and not text.lstrip("-").startswith("0" if number else "00")


POSITIVE = st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False)


@settings(max_examples=300)
@given(FLOATS, POSITIVE, st.floats(-300, 300))
def test_real_functions_are_as_near_as_can_be(x: float, positive: float, y: float) -> None:
    """The platform's own may be off by one in the last place; ours is at most that far from it."""
    pairs = [(float_math.sine(x), math.sin(x)), (float_math.cosine(x), math.cos(x))]
    pairs.append((float_math.logarithm(positive), math.log(positive)))
    try:
        pairs.append((float_math.power(positive, y), math.pow(positive, y)))
    except OverflowError:
        with pytest.raises(OverflowError):
            math.pow(positive, y)
    for ours, theirs in pairs:
        assert abs(ours - theirs) <= math.ulp(theirs)


@given(st.integers(-(2**26), 2**26), st.integers(0, 20))
def test_powers_of_whole_numbers_are_rounded_once(base: int, exponent: int) -> None:
    assert float_math.power(float(base), float(exponent)) == float(base**exponent)


def test_long_text_comes_first_and_shared_text_once() -> None:
    machine = Machine(
        f'(define a (cons "{"x" * 80}" "{"y" * 80}")) (define kept (list (cons 1 (cons a a)) (cons "{"y" * 80}" a))) 1'
    )
    machine.run()
    heap = machine.freeze()["heap"]
    assert [thing.get("value", "")[:1] for thing in heap[:2]] == ["x", "y"]
    assert [thing["tag"] for thing in heap[2:]] == ["pair", "pair", "pair", "pair", "list"]
    assert heap[2] == {"tag": "pair", "car": {"tag": "ref", "id": 0}, "cdr": {"tag": "ref", "id": 1}}
    assert Machine.thaw(machine.freeze()).freeze() == machine.freeze()
