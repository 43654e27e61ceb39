"""The tools offered to a model, and the changes a molt may make."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agents.contract.agent_contract import (
    ContractError,
    Description,
    check_metadata,
    distinct,
    is_molt_of,
    safe_tool_name,
)

LEGAL = re.compile(r"[A-Za-z0-9_-]{1,64}")


@given(st.text())
@example("")
@example("___")
@example("\ud800")
@example("x" * 65)
def test_any_name_has_a_form_that_models_take(name: str) -> None:
    safe = safe_tool_name(name)
    assert LEGAL.fullmatch(safe)
    assert safe_tool_name(name) == safe
    assert safe_tool_name(safe) == safe


@given(st.from_regex(LEGAL, fullmatch=True))
def test_a_legal_name_stays_itself(name: str) -> None:
    assert safe_tool_name(name) == name


@given(st.lists(st.text(max_size=80), max_size=12))
@example(["x" * 64, "x" * 64, "x" * 64])
@example(["a b", "a.b", "a_b", "a_b_2"])
def test_names_that_clash_are_told_apart(names: list[str]) -> None:
    taken: set[str] = set()
    for name in names:
        given_name = distinct(safe_tool_name(name), taken)
        assert LEGAL.fullmatch(given_name)
        assert given_name not in taken
        taken.add(given_name)


@pytest.mark.parametrize(
    ("name", "safe"),
    [
        ("Hacker News", "Hacker_News"),
        ("mail.send", "mail_send"),
        ("Straße nach Åse", "Strasse_nach_Ase"),
        ("ﬁne", "fine"),
        ("(draft)", "draft"),
    ],
)
def test_forms_stay_readable(name: str, safe: str) -> None:
    assert safe_tool_name(name) == safe


def test_long_and_unwritable_names_stay_distinct() -> None:
    assert safe_tool_name("x" * 70) != safe_tool_name("x" * 71)
    assert safe_tool_name("天気") != safe_tool_name("電気")


def parameters(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_parameters_are_put_into_a_form_that_models_accept() -> None:
    found = check_metadata(
        "A",
        {
            "parameters": {
                **parameters(city="string", note="Any words", days={"type": "integer"}),
                "required": ["city", "gone", 7],
            }
        },
    )
    assert found["properties"] == {
        "city": {"type": "string"},
        "note": {"description": "Any words"},
        "days": {"type": "integer"},
    }
    assert found["required"] == ["city"]
    loose = {**parameters(city={}), "required": True}
    assert check_metadata("A", {"parameters": loose})["required"] == []


def test_parameters_may_be_absent() -> None:
    assert check_metadata("A", {}) == {"type": "object", "properties": {}}
    assert check_metadata("A", {"parameters": None}) == {"type": "object", "properties": {}}


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        (None, "A has no metadata"),
        (["A"], "A: metadata is a list, not a dict"),
        (7, "A: metadata is an int, not a dict"),
        ({"parameters": "query"}, "A: parameters is a str, not a dict"),
        ({"parameters": {}}, "A: the type of parameters is missing; it must be 'object'"),
        ({"parameters": {"type": "array"}}, "A: the type of parameters is 'array'; it must be 'object'"),
        ({"parameters": {"type": "object"}}, "A: properties of parameters is missing; it must be a dict"),
        (
            {"parameters": {"type": "object", "properties": []}},
            "A: properties of parameters is a list; it must be a dict",
        ),
        (
            {"parameters": {"type": "object", "properties": {7: {}}}},
            "A: parameters cannot be written as JSON (Dict key must be str)",
        ),
    ],
)
def test_what_no_model_would_take_is_quarantined_with_its_reason(metadata: Any, reason: str) -> None:
    with pytest.raises(ContractError) as caught:
        check_metadata("A", metadata)
    assert str(caught.value) == reason


def described(name: str = "A", required: list[str] | None = None, **properties: Any) -> Description:
    return Description(name, name, "", {**parameters(**properties), "required": required or []}, name)


CITY = {"type": "string"}


def test_additions_are_a_molt() -> None:
    old = described(city=CITY, required=["city"])
    new = described(city={**CITY, "description": "Where"}, days={"type": "integer"}, required=["city"])
    assert is_molt_of(old, new) == []
    assert is_molt_of(old, described(city=CITY)) == [], "requiring less breaks nobody"
    assert is_molt_of(old, Description(**new.as_json())) == []


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        (described("B", city=CITY), "the name changed from A to B"),
        (described(), "parameter city is gone"),
        (described(city={"type": "integer"}), "parameter city changed from string to integer"),
        (
            described(city={"type": ["string", "null"]}),
            "parameter city changed from string to null or string",
        ),
        (described(city={}), "parameter city changed from string to any type"),
        (described(city={**CITY, "enum": ["Rome"]}), "parameter city allows fewer values"),
        (described(city=CITY, required=["city"]), "parameter city is now required"),
        (described(city=CITY, days={}, required=["days"]), "parameter days is now required"),
    ],
)
def test_what_is_no_molt_is_said(new: Description, reason: str) -> None:
    assert is_molt_of(described(city=CITY), new) == [reason]


def test_choices_may_grow() -> None:
    old = described(unit={"type": "string", "enum": ["c", "f"]})
    assert is_molt_of(old, described(unit={"type": "string", "enum": ["f", "c", "k"]})) == []
    assert is_molt_of(old, described(unit={"type": "string"})) == []
    fewer = described(unit={"type": "string", "enum": ["c"]})
    assert is_molt_of(old, fewer) == ["parameter unit allows fewer values"]
