from __future__ import annotations

import copy
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.twins.merge.parallel_lives import hashes, lives, side, told, utc
from twins.eggs.frames import Frame, chained, make, verified
from twins.errors import BadEggError
from twins.merge.frame_merge import Dimension, Merged, Side, merge

BEGINNING = told("garden", None, 0, [(1, "a"), (1, "b")], "both")


def all_frames(merged: Merged) -> list[Frame]:
    return [*merged.frames, *chain.from_iterable(one.frames for one in merged.aside)]


def again(label: str, merged: Merged) -> Side:
    return Side(label, merged.frames, merged.aside)


def without_labels(merged: Merged) -> list[Dimension]:
    return [replace(one, seen_in=()) for one in merged.aside]


def test_what_both_have_is_shared_and_what_one_has_is_new() -> None:
    ours = BEGINNING + told("garden", BEGINNING[-1], 60, [(1, "ours")], "one")
    theirs = BEGINNING + told("kitchen", None, 90, [(1, "theirs"), (1, "more")], "two")
    merged = merge(side("desk", ours), side("pi", theirs), side("base", BEGINNING))
    assert (merged.shared, merged.new, merged.contradicting, merged.aside) == (2, 3, 0, [])
    assert [frame["payload"]["text"] for frame in merged.frames] == ["a", "b", "ours", "theirs", "more"]


def test_contradiction_is_set_aside_with_its_followers() -> None:
    ours = BEGINNING + told("garden", BEGINNING[-1], 60, [(5, "ask x"), (1, "answer x")], "one")
    theirs = BEGINNING + told(
        "garden", BEGINNING[-1], 60, [(1, "ask y"), (5, "answer y"), (1, "thanks")], "two"
    )
    merged = merge(side("desk", ours), side("pi", theirs), side("base", BEGINNING))
    assert [frame["payload"]["text"] for frame in merged.frames] == ["a", "b", "ask y", "answer y", "thanks"]
    [aside] = merged.aside
    assert [frame["payload"]["text"] for frame in aside.frames] == ["ask x", "answer x"]
    assert aside.after == BEGINNING[-1]["hash"]
    assert aside.instead_of == theirs[2]["hash"]
    assert aside.first == ours[2]["hash"]
    assert (aside.stream_id, aside.seen_in) == ("garden", ("desk",))
    assert (merged.shared, merged.new, merged.contradicting) == (2, 3, 2)


def test_same_moment_twice_is_a_contradiction_of_two() -> None:
    ours = list(chained("garden", [(utc(1), "memory.note", "x"), (utc(1), "memory.note", "y")]))
    theirs = list(chained("kitchen", [(utc(1), "memory.note", "z")]))
    merged = merge(side("desk", ours), side("pi", theirs))
    assert merged.contradicting in (1, 2)
    assert len(all_frames(merged)) == 3
    alone = merge(side("desk", ours), side("pi", ours))
    assert (alone.shared, alone.contradicting) == (2, 0)


def test_what_was_found_about_a_dimension_stays_on_record() -> None:
    whole = told("garden", None, 0, [(1, letter) for letter in "abcde"], "both")
    meanwhile = list(chained("kitchen", [(whole[4]["utc"], "k", "at that moment, and on the same machine")]))
    ours, theirs = side("desk", whole[4:] + meanwhile), side("pi", whole[:2])
    once = merge(ours, theirs)
    assert [one.instead_of for one in once.aside] == [None]
    assert merge(again("x", once), theirs).aside == once.aside


def test_the_base_is_canon_whatever_came_earlier() -> None:
    late = told("garden", None, 500, [(0, "late")], "both")
    early = told("garden", None, 1, [(0, "early")], "two")
    merged = merge(side("desk", []), side("pi", early), side("base", late))
    assert [frame["payload"]["text"] for frame in merged.frames] == ["late"]
    assert [frame["payload"]["text"] for frame in merge(side("desk", late), side("pi", early)).frames] == [
        "early"
    ]


def test_frames_are_ordered_by_moment_and_then_by_hash() -> None:
    one = list(chained("a", [("2026-04-12T14:00:00Z", "k", 1), ("2026-04-12T16:00:00+02:00", "k", 2)]))
    two = list(chained("b", [("2026-04-12T14:00:00.500Z", "k", 3)]))
    merged = merge(side("desk", [*one, *two]), side("pi", [*one, *two]))
    assert [frame["payload"] for frame in merged.frames] == [1, 2, 3], "16:00+02:00 is 14:00Z"


def test_unjoinable_piece_waits_for_the_missing_one() -> None:
    whole = told("garden", None, 0, [(1, letter) for letter in "abcdef"], "both")
    gap = merge(side("desk", whole[:2]), side("pi", whole[4:]))
    assert gap.frames == whole[:2]
    [aside] = gap.aside
    assert (list(aside.frames), aside.instead_of) == (whole[4:], None)
    filled = merge(again("desk", gap), side("shed", whole[2:4]))
    assert filled.frames == whole
    assert filled.aside == []


def test_a_dimension_can_fork_too() -> None:
    fork = BEGINNING + told("garden", BEGINNING[-1], 60, [(9, "late")], "one")
    branches = [fork + told("garden", fork[-1], 70, [(1, who)], who) for who in ("one", "two")]
    canon = BEGINNING + told("garden", BEGINNING[-1], 60, [(1, "soon")], "three")
    merged = merge(again("x", merge(side("desk", branches[0]), side("pi", canon))), side("shed", branches[1]))
    assert merged.frames == canon
    assert len(merged.aside) == 2
    assert hashes(all_frames(merged)) == hashes([*canon, *branches[0], *branches[1]])


def test_one_hash_for_two_frames_is_refused() -> None:
    forged = copy.deepcopy(BEGINNING)
    forged[0]["payload"]["text"] = "never said"
    with pytest.raises(BadEggError, match="Frame 0 is not what its hash says"):
        merge(side("desk", BEGINNING), side("pi", forged))


def test_frame_keys_outside_the_hash_are_joined() -> None:
    ours, theirs = ([{**frame, key: 1} for frame in BEGINNING] for key in ("seen", "liked"))
    merged = merge(side("desk", ours), side("pi", theirs))
    assert merged.frames == [{**frame, "seen": 1, "liked": 1} for frame in BEGINNING]


def test_moments_that_are_none_still_have_an_order() -> None:
    frame = make("garden", 0, "long ago", "k", 1, None)
    other = make("garden", 0, "once", "k", 1, None)
    assert merge(side("a", [frame]), side("b", [other])).frames == [frame]
    assert merge(side("a", [other]), side("b", [frame])).frames == [frame]


# Laws


@given(lives(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_no_frame_is_lost_and_every_chain_holds(drawn: list[list[Frame]], with_base: bool) -> None:
    base, ours, theirs = drawn
    merged = merge(side("desk", ours), side("pi", theirs), side("base", base) if with_base else None)
    everything = hashes([*ours, *theirs, *(base if with_base else [])])
    assert hashes(all_frames(merged)) == everything
    assert len(all_frames(merged)) == len(everything), "and none is there twice"
    assert len(merged.frames) + merged.contradicting == len(everything)
    assert list(verified(merged.frames)) == merged.frames
    for one in merged.aside:
        assert list(verified(one.frames)) == list(one.frames)
        assert one.seen_in
        assert one.frames[0]["prev_hash"] == one.after
    if with_base:
        assert hashes(base) <= hashes(merged.frames), "what both came from is canon"


@given(lives(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_it_does_not_matter_who_is_ours(drawn: list[list[Frame]], with_base: bool) -> None:
    base, ours, theirs = drawn
    before = side("base", base) if with_base else None
    one = merge(side("desk", ours), side("pi", theirs), before)
    assert merge(side("pi", theirs), side("desk", ours), before) == one
    assert without_labels(merge(side("pi", ours), side("desk", theirs), before)) == without_labels(one)


@given(lives(), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_merging_again_changes_nothing(drawn: list[list[Frame]], with_base: bool, ours_again: bool) -> None:
    base, ours, theirs = drawn
    before = side("base", base) if with_base else None
    once = merge(side("desk", ours), side("pi", theirs), before)
    repeated = side("desk", ours) if ours_again else side("pi", theirs)
    for twice in (merge(again("x", once), repeated, before), merge(repeated, again("x", once), before)):
        assert twice.frames == once.frames
        assert without_labels(twice) == without_labels(once)
        assert {label for one in twice.aside for label in one.seen_in} <= {"desk", "pi", "base"}
    with_itself = merge(again("x", once), again("x", once), before)
    assert (with_itself.frames, with_itself.aside) == (once.frames, once.aside)


@given(lives(machines=3), st.permutations(range(3)))
@settings(max_examples=150, deadline=None)
def test_three_machines_lose_nothing_in_whatever_order_they_meet(
    drawn: list[list[Frame]], order: list[int]
) -> None:
    _, *machines = drawn
    first, second, third = (side(f"m{index}", machines[index]) for index in order)
    merged = merge(again("both", merge(first, second)), third)
    assert hashes(all_frames(merged)) == hashes(chain.from_iterable(machines))
    assert list(verified(merged.frames)) == merged.frames
