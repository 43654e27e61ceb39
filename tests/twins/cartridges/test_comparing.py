"""The differences between two cartridges: item by item, in words, whatever their shapes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.twins.cartridges.living_documents import buddies, seeds
from twins.cartridges import lispy_file, lispy_runner
from twins.cartridges.diff import compare
from twins.cartridges.json_documents import Document, same
from twins.cartridges.shape_conversion import convert
from twins.cartridges.shapes import Shape

BUDDY: Document = {
    "_meta": {"type": "rappter.egg", "version": 1},
    "organism": {"name": "Fluffy", "stage": "adult", "xp": 300, "long_memory": [{"text": str(n)} for n in range(5)]},
}  # fmt: skip


def changed(**organism: Any) -> Document:
    return {**BUDDY, "organism": {**BUDDY["organism"], **organism}}


@given(st.one_of(buddies, seeds), st.sampled_from(Shape))
def test_one_and_the_same_in_two_shapes_differs_in_nothing(document: Document, shape: Shape) -> None:
    before = copy.deepcopy(document)
    assert compare(document, convert(document, shape)).found == []
    assert same(document, before), "comparing changes neither"


@given(buddies, buddies)
def test_nothing_is_said_to_differ_only_where_nothing_does(one: Document, other: Document) -> None:
    found = compare(one, other)
    assert bool(found.found) != same(one, other)
    assert bool(found.lines()) == bool(found.found)
    for edit in found.found:
        assert not same(edit.get("was"), edit.get("is")) or ("was" in edit) != ("is" in edit)


@given(st.lists(st.integers(0, 4), max_size=8), st.lists(st.integers(0, 4), max_size=8))
def test_a_list_is_told_by_what_came_and_what_went(before: list[int], after: list[int]) -> None:
    """Going through what is said leads from one list to the other."""
    one, other = changed(long_memory=before), changed(long_memory=after)
    edits = [edit for edit in compare(one, other).found if edit["at"][:2] == ["organism", "long_memory"]]
    gone = {edit["at"][2] for edit in edits if "is" not in edit}
    placed = {edit["at"][2]: edit["is"] for edit in edits if "is" in edit}
    went = sum("is" not in edit for edit in edits)
    came = sum("was" not in edit for edit in edits)
    assert len(before) - went + came == len(after)
    assert all(
        before[index] == edit["was"] for edit in edits if "is" not in edit for index in [edit["at"][2]]
    )
    assert all(after[index] == value for index, value in placed.items())
    assert len(gone) == went


def test_what_moves_in_a_list_is_not_told_as_changed() -> None:
    longer = changed(long_memory=[{"text": "new"}, *BUDDY["organism"]["long_memory"][:-1]])
    assert compare(BUDDY, longer).lines() == [
        'organism.long_memory[0] added: {"text":"new"}',
        'organism.long_memory[4] removed: {"text":"4"}',
    ]
    told = changed(long_memory=[{"text": "0", "mood": 3}, *BUDDY["organism"]["long_memory"][1:]])
    assert compare(BUDDY, told).lines() == ["organism.long_memory[0].mood added: 3"]


def test_a_frozen_machine_is_one_thing() -> None:
    document = lispy_file.new("counter", {"main": "(define n (+ (* 2 3) 4)) n"})
    early, late = (lispy_runner.run(document, steps=steps).document for steps in (2, 5))
    assert compare(early, late).lines() == ["machine: frozen after 2 steps → frozen after 5 steps"]
    done = lispy_runner.run(late).document
    lines = compare(late, done).lines()
    assert "machine: frozen after 5 steps → not under way" in lines
    assert "env.n added: 10" in lines
    assert not [line for line in lines if line.startswith("env_wire")], "it would say the same again"


@pytest.mark.parametrize("size", [10, 3000])
def test_long_lists_are_compared_in_reasonable_time(size: int) -> None:
    one, other = changed(long_memory=list(range(size))), changed(long_memory=list(range(size, 2 * size)))
    assert compare(one, other).found
