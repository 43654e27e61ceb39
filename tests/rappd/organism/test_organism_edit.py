"""Edits of ``organism.yaml``: one entry more or less, and every other line as it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rappd.errors import ConflictError, NotFoundError
from rappd.organism.organism_edit import with_entry, without_entry
from rappd.organism.organism_file import read

LAB, ATTIC = "ab" * 32, "12" * 32
COMMENTED = f"""\
# the lab

organism:
  name: lab   # ours
listeners:
  # adds
  - name: calculator.add   # two numbers
    file: calculator_listener.py

  # looks things up
  - name: search

# machines of the lab
gateways: [{{name: lab, fingerprint: "{LAB}"}}]  # one
timers:
"""


def lines_of(text: str) -> set[str]:
    return set(text.splitlines())


@pytest.mark.parametrize(
    ("section", "entry", "line"),
    [
        ("listeners", {"name": "Dice", "file": ""}, "  - name: Dice"),
        (
            "timers",
            {"name": "m", "when": "every day at 9", "ask": "what: is new?"},
            '    ask: "what: is new?"',
        ),
        ("agents", {"name": "clerk", "prompt": "prompts/clerk.md", "tools": ["Dice"]}, "    tools: [Dice]"),
        (
            "gateways",
            {"name": "attic", "fingerprint": ATTIC},
            f'gateways: [{{name: lab, fingerprint: "{LAB}"}}, {{name: attic, fingerprint: "{ATTIC}"}}]  # one',
        ),
    ],
    ids=["a block", "an empty section", "a section that was not there", "a flow"],
)
def test_an_entry_is_added_and_every_comment_stays(section: str, entry: dict[str, Any], line: str) -> None:
    text = with_entry(COMMENTED, section, entry)
    assert line in lines_of(text)
    gone = lines_of(COMMENTED) - lines_of(text)
    assert all(one.startswith("gateways:") for one in gone)
    found = read(text)
    assert found.organism is not None, found.faults
    assert entry["name"] in [one.name for one in getattr(found.organism, section)]
    assert without_entry(text, section, entry["name"]).replace("agents:\n", "") == COMMENTED


@pytest.mark.parametrize("name", ["calculator.add", "search", "SEARCH"])
def test_an_entry_is_taken_out_with_its_own_lines_alone(name: str) -> None:
    text = without_entry(COMMENTED, "listeners", name)
    assert {"  # adds", "  # looks things up", "# machines of the lab", "  name: lab   # ours"} <= lines_of(
        text
    )
    found = read(text).organism
    assert found is not None and len(found.listeners or ()) == 1


def test_the_last_entry_taken_out_leaves_a_list_that_offers_nothing() -> None:
    text = without_entry("listeners:\n  - name: a\n", "listeners", "a")
    found = read(text).organism
    assert found is not None and found.listeners == ()


def test_a_name_that_is_there_and_one_that_is_not() -> None:
    with pytest.raises(ConflictError):
        with_entry(COMMENTED, "listeners", {"name": "Search"})
    with pytest.raises(NotFoundError):
        without_entry(COMMENTED, "listeners", "nobody")


@given(
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=40).filter(
        lambda name: name[0].isalpha() and "\ufffe" not in name and "\uffff" not in name
    )
)
def test_any_name_comes_back_as_it_was_given(name: str) -> None:
    found = read(with_entry(COMMENTED, "listeners", {"name": name})).organism
    assert found is not None and (found.listeners or ())[-1].name == name


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("listeners: [{name: x},]\n", "listeners: [{name: x}, {name: two},]\n"),
        ("listeners: [\n  {name: x},  # first\n]\n", "listeners: [\n  {name: x}, {name: two},  # first\n]\n"),
    ],
)
def test_a_comma_behind_the_last_entry_stays_the_last(text: str, after: str) -> None:
    assert with_entry(text, "listeners", {"name": "two"}) == after


def test_an_entry_whose_dash_stands_above_it_is_taken_out_with_it() -> None:
    text = "listeners:\n  -\n    name: x\n  -   # second\n\n    name: y\n"
    assert without_entry(text, "listeners", "y") == "listeners:\n  -\n    name: x\n"
    assert without_entry(text, "listeners", "x") == "listeners:\n  -   # second\n\n    name: y\n"
