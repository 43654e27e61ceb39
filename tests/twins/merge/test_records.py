from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twins.cartridges.json_documents import canonical, same
from twins.errors import TwinConflictError
from twins.merge.json_merge import merge

Document = dict[str, Any]
RAPPID = "rappid:@ada/gardener:" + "4f2a" * 16


def merged(base: Document | None, ours: Document, theirs: Document) -> Document:
    """The document; and it is the same one with either side as ours."""
    joined = merge(base, ours, theirs)
    assert same(merge(base, theirs, ours).document, joined.document)
    return joined.document


def test_sets_are_joined() -> None:
    base = {"tags": ["a", "b"]}
    assert merged(base, {"tags": ["a", "b", "c"]}, {"tags": ["b", "d"]}) == {"tags": ["b", "c", "d"]}


def test_the_later_update_decides_and_the_other_changes_stay() -> None:
    base = {"notes": {"n1": {"text": "old", "color": "red", "updated_at": "2026-01-01T00:00:00Z"}}}
    ours = {"notes": {"n1": {"text": "ours", "color": "blue", "updated_at": "2026-01-03T00:00:00Z"}}}
    theirs = {"notes": {"n1": {"text": "theirs", "color": "red", "updated_at": "2026-01-02T23:00:00-09:00"}}}
    assert merged(base, ours, theirs)["notes"]["n1"] == {
        "text": "theirs",
        "color": "blue",
        "updated_at": "2026-01-02T23:00:00-09:00",
    }
    joined = merge(base, ours, theirs)
    assert joined.contradictions == [(["notes", "n1", "text"], "ours")]


def test_numbers_that_say_when_they_were_updated_are_no_counters() -> None:
    base = {"heat": {"value": 18, "updated_at": 1}}
    assert merged(
        base, {"heat": {"value": 20, "updated_at": 3}}, {"heat": {"value": 19, "updated_at": 2}}
    ) == {"heat": {"value": 20, "updated_at": 3}}


def test_counters_add_up() -> None:
    assert merged({"n": {"visits": 10}}, {"n": {"visits": 13}}, {"n": {"visits": 9}}) == {"n": {"visits": 12}}
    assert merged({}, {"visits": 3}, {"visits": 4}) == {"visits": 7}
    assert merged({"ok": True}, {"ok": False}, {"ok": True}) == {"ok": False}
    assert merged({"x": 1}, {"x": 1.5}, {"x": 2}) in ({"x": 1.5}, {"x": 2}), "a float is no count"


def test_what_was_changed_beats_its_deletion() -> None:
    base = {"a": {"text": "one"}, "b": {"text": "two"}, "c": 1}
    ours = {"b": {"text": "two"}, "c": 1}
    theirs = {"a": {"text": "changed"}, "c": 1}
    assert merged(base, ours, theirs) == {"a": {"text": "changed"}, "c": 1}
    items = [{"id": 1, "text": "one"}, {"id": 2, "text": "two"}]
    gone, new = [items[1]], [{"id": 1, "text": "changed"}, items[1], {"id": 3, "text": "three"}]
    assert merged({"l": items}, {"l": gone}, {"l": new}) == {"l": new}


def test_a_replay_adds_nothing() -> None:
    base = {"log": [{"id": 1, "at": "2026-01-01"}]}
    ours = {"log": [*base["log"], {"id": 2, "at": "2026-01-02"}]}
    theirs = {"log": [*base["log"], {"id": 3, "at": "2026-01-03"}, {"id": 2, "at": "2026-01-02"}]}
    once = merged(base, ours, theirs)
    assert [item["id"] for item in once["log"]] == [1, 2, 3]
    assert merged(base, once, theirs) == once
    assert merged(theirs, once, theirs) == once


def test_another_being_is_refused() -> None:
    other = "rappid:@ada/gardener:" + "0000" * 16
    with pytest.raises(TwinConflictError, match="two different beings"):
        merge({"rappid": RAPPID}, {"rappid": RAPPID}, {"rappid": other})
    with pytest.raises(TwinConflictError):
        merge({"rappid": other}, {"rappid": RAPPID}, {"rappid": RAPPID})
    with pytest.raises(TwinConflictError):
        merge(None, {"rappid": RAPPID}, {"rappid": 5})
    assert merge({}, {"rappid": RAPPID}, {"x": 1}).document == {"rappid": RAPPID, "x": 1}
    old = "123e4567-e89b-42d3-a456-426614174000"
    merge(None, {"rappid": old}, {"rappid": old.replace("-", "")})


def test_different_kinds_are_a_reported_contradiction() -> None:
    joined = merge({"a": 1}, {"a": "text"}, {"a": [1]})
    assert joined.document["a"] in ("text", [1])
    [(place, lost)] = joined.contradictions
    assert place == ["a"]
    assert sorted([canonical(lost), canonical(joined.document["a"])]) == sorted([b'"text"', b"[1]"])


# Laws

values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, -0.5]) | st.sampled_from("abc"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "id", "updated_at"]), inner, max_size=3)
    ),
    max_leaves=6,
)
documents = st.dictionaries(st.sampled_from(["a", "b", "updated_at"]), values, max_size=3)


@given(documents | st.none(), documents, documents)
@settings(max_examples=200, deadline=None)
def test_both_sides_come_to_the_same_document(
    base: Document | None, ours: Document, theirs: Document
) -> None:
    before = copy.deepcopy([base, ours, theirs])
    one, other = merge(base, ours, theirs), merge(base, theirs, ours)
    assert same(one.document, other.document)
    assert same([base, ours, theirs], before), "the given ones stay untouched"
    assert sorted(map(repr, one.contradictions)) == sorted(map(repr, other.contradictions))


@given(documents, documents)
@settings(max_examples=150, deadline=None)
def test_what_only_one_side_changed_is_taken_as_it_is(base: Document, ours: Document) -> None:
    assert same(merge(base, ours, base).document, ours)
    assert same(merge(base, base, ours).document, ours)
    assert same(merge(base, ours, ours).document, ours)
    assert merge(base, ours, base).contradictions == []


@given(documents, documents, documents)
@settings(max_examples=150, deadline=None)
def test_merging_again_from_what_was_merged_changes_nothing(
    base: Document, ours: Document, theirs: Document
) -> None:
    once = merge(base, ours, theirs).document
    assert same(merge(theirs, once, theirs).document, once)
    assert same(merge(ours, once, ours).document, once)
