from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twins.errors import BadFilterError
from twins.lifecycle.selection import CLAUSES, MAX_DAYS, MAX_PATTERN, Selection, matching

NOW = datetime(2026, 11, 21, tzinfo=UTC)


@dataclass
class Somebody:
    name: str
    kind: str
    quiet_days: int | None
    """None: running."""

    def quiet_since(self) -> datetime | None:
        return None if self.quiet_days is None else NOW - timedelta(days=self.quiet_days)


def chosen(selection: Selection, twins: list[Somebody]) -> list[Somebody]:
    return selection.choose(twins, quiet_since=Somebody.quiet_since, now=NOW)


KINDS = st.sampled_from(["personal", "project", "memorial", "πroject", "x"])
NAMES = st.sampled_from(["test", "Test", "test-1", "tester", "garden", "τest"])
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "kind": KINDS,
        "name_prefix": st.sampled_from(["t", "te", "T", "test-"]),
        "stopped_for_days": st.integers(0, 5),
        "exclude_kinds": st.lists(KINDS, min_size=1),
    },
).filter(bool)
TWINS = st.lists(st.builds(Somebody, NAMES, KINDS, st.none() | st.integers(0, 6)))


@given(FILTERS, TWINS)
def test_a_twin_is_meant_when_every_clause_holds(given_filter: dict[str, Any], twins: list[Somebody]) -> None:
    def meant(twin: Somebody) -> bool:
        days = given_filter.get("stopped_for_days")
        return all(
            (
                twin.kind == given_filter.get("kind", twin.kind),
                twin.name.startswith(given_filter.get("name_prefix", "")),
                twin.kind not in given_filter.get("exclude_kinds", ()),
                days is None or (twin.quiet_days is not None and twin.quiet_days >= days),
            )
        )

    assert chosen(Selection.from_filter(given_filter), twins) == [twin for twin in twins if meant(twin)]


@given(FILTERS)
def test_a_filter_and_a_command_line_say_the_same(given_filter: dict[str, Any]) -> None:
    selection = Selection.from_filter(given_filter)
    assert selection.as_filter() == given_filter
    texts = [
        f"{clause}={','.join(value) if isinstance(value, list) else value}"
        for clause, value in given_filter.items()
    ]
    assert Selection.from_options(texts) == selection


def test_the_command_line_takes_kinds_with_commas_and_again() -> None:
    selection = Selection.from_options(
        ["exclude_kinds=memorial, place", "exclude_kinds=buddy", "name_regex=^a=b"]
    )
    assert selection == Selection(exclude_kinds=("memorial", "place", "buddy"), name_regex="^a=b")


@pytest.mark.parametrize(
    ("texts", "complaint"),
    [
        ([], "empty"),
        (["kind"], "CLAUSE=VALUE"),
        (["=project"], 'no clause ""'),
        (["kinds=project"], 'no clause "kinds"'),
        (["exclude_alive=true"], 'no clause "exclude_alive"'),
        (["kind=a", "kind=b"], "twice"),
        (["kind="], "kind needs a text"),
        (["name_prefix="], "name_prefix needs a text"),
        (["exclude_kinds=,"], "list of kinds"),
        (["stopped_for_days=soon"], "whole number"),
        (["stopped_for_days=-1"], "whole number"),
        (["stopped_for_days=1.5"], "whole number"),
        (["stopped_for_days=²"], "whole number"),
        (["stopped_for_days=99999999999999999999"], "whole number"),
        (["name_regex=("], "not a regular expression"),
        (["name_regex=a{99999999999}"], "not a regular expression"),
        ([f"name_regex={'a' * (MAX_PATTERN + 1)}"], "longer"),
    ],
)
def test_a_filter_that_is_not_clear_is_refused(texts: list[str], complaint: str) -> None:
    with pytest.raises(BadFilterError, match=re.escape(complaint)) as caught:
        Selection.from_options(texts)
    assert caught.value.do


@pytest.mark.parametrize(
    "given_filter",
    [
        None,
        [],
        "kind=project",
        {},
        {"kind": None},
        {"kind": ["project"]},
        {"kind": "project", "force": True},
        {1: 2},
        {"stopped_for_days": True},
        {"stopped_for_days": "30"},
        {"stopped_for_days": 30.0},
        {"stopped_for_days": MAX_DAYS + 1},
        {"exclude_kinds": "memorial"},
        {"exclude_kinds": []},
        {"exclude_kinds": [""]},
        {"exclude_kinds": [None]},
        {"name_regex": b"x"},
    ],
)
def test_a_filter_object_is_taken_exactly_or_not_at_all(given_filter: object) -> None:
    with pytest.raises(BadFilterError):
        Selection.from_filter(given_filter)


@given(
    st.dictionaries(
        st.sampled_from([*CLAUSES, "other"]),
        st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.lists(st.text(max_size=3)),
    )
)
def test_no_filter_object_breaks_the_parser(given_filter: dict[str, Any]) -> None:
    try:
        selection = Selection.from_filter(given_filter)
    except BadFilterError:
        return
    assert selection.as_filter() == given_filter


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("est", ["test-1", "Test", "latest"]),
        ("^test", ["test-1"]),
        (r"-\d+$", ["test-1"]),
        ("(?i)^test", ["test-1", "Test"]),
        ("^(?!.*est)", ["\ud800", "garden"]),
        ("^.{1}$", ["\ud800"]),
    ],
)
def test_a_pattern_is_found_anywhere_unless_it_is_anchored(pattern: str, expected: list[str]) -> None:
    twins = [Somebody(name, "x", 0) for name in ("test-1", "Test", "latest", "\ud800", "garden")]
    selection = Selection.from_filter({"name_regex": pattern})
    assert {twin.name for twin in chosen(selection, twins)} == set(expected)


@settings(max_examples=25, deadline=None)
@given(
    st.from_regex(r"\^?([ab]|\[ab\]|\.|a\*|b\+|\(a\|b\)\?){1,6}\$?", fullmatch=True),
    st.lists(st.text("abc", max_size=8), min_size=1),
)
def test_patterns_mean_what_pythons_re_makes_of_them(pattern: str, names: list[str]) -> None:
    assert matching(pattern, names) == [re.search(pattern, name) is not None for name in names]


def test_a_pattern_that_would_hang_is_given_up() -> None:
    with pytest.raises(BadFilterError, match="too long"):
        matching("(a|aa)+$", ["a" * 120 + "!"])
