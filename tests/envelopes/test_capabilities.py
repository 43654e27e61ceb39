from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envelopes.errors import BadCapabilityError
from envelopes.identity.capabilities import attenuate, capability, check, covers, meet, reduced

SMALL = st.sampled_from(["a", "b", "ab"])
PATHS = st.lists(SMALL, max_size=2).map(lambda parts: "".join(f".{part}" for part in parts))
VERBS = st.sampled_from(["HELP", "STREAM", "HELLO", "EGG", "READ"])
CAPABILITIES = st.one_of(
    st.just("*"),
    st.builds(lambda verb, path, star: verb + path + star, VERBS, PATHS, st.sampled_from(["", ".*"])),
)
SETS = st.lists(CAPABILITIES, max_size=4)

DEEDS = [
    verb + "".join(f".{part}" for part in parts)
    for verb in ("HELP", "STREAM", "HELLO", "CANCEL", "EGG", "PAIR", "READ")
    for size in range(4)
    for parts in itertools.product(("a", "b", "ab"), repeat=size)
]
"""Everything that somebody could do in a small world; what a capability means is which of these it allows."""


def allowed(*held: str) -> set[str]:
    return {deed for deed in DEEDS if any(_allows(one, deed) for one in held)}


def _allows(held: str, deed: str) -> bool:
    """The rule in its plainest words, segment by segment."""
    if held == "*":
        return not deed.startswith("READ")
    verb, *path = held.split(".")
    deed_verb, *deed_path = deed.split(".")
    if deed_verb != verb and not (verb == "HELP" and deed_verb in ("HELLO", "STREAM", "CANCEL")):
        return False
    if path and path[-1] == "*":
        return deed_path[: len(path) - 1] == path[:-1]
    return deed_path == path


@pytest.mark.parametrize(
    ("held", "wanted", "yes"),
    [
        ("HELP.a.*", "HELP.a", True),
        ("HELP.a.*", "HELP.a.b", True),
        ("HELP.a.*", "HELP.ab", False),
        ("HELP.a.*", "HELP.a.*", True),
        ("HELP.a", "HELP.a.b", False),
        ("HELP.a", "HELP.a.*", False),
        ("HELP", "HELP.a", False),
        ("HELP.*", "HELP", True),
        ("HELP.*", "HELP.brainstem.Clock", True),
        ("HELP.brainstem", "STREAM.brainstem", True),
        ("HELP.brainstem.*", "CANCEL.brainstem.Clock", True),
        ("STREAM.brainstem", "HELP.brainstem", False),
        ("HELLO.*", "CANCEL.a", False),
        ("HELP.*", "EGG", False),
        ("HELP.*", "HELPER", False),
        ("EGG", "EGG", True),
        ("*", "PAIR.anything.at-all", True),
        ("*", "READ.memories", False),
        ("*", "*", True),
        ("READ.*", "READ.memories", True),
        ("HELP.*", "*", False),
        ("HELP.b*", "HELP.brainstem", False),
        ("HELP.*.Clock", "HELP.brainstem.Clock", False),
    ],
)
def test_what_covers_what(held: str, wanted: str, yes: bool) -> None:
    assert covers([held], wanted) is yes
    assert covers(["PAIR", held], wanted) is yes


def test_nothing_covers_nothing() -> None:
    assert not covers([], "HELP.a")


@given(SETS, st.sampled_from(DEEDS))
def test_covering_is_the_rule_word_for_word(held: list[str], deed: str) -> None:
    assert covers(held, deed) is (deed in allowed(*held))


@given(CAPABILITIES, CAPABILITIES)
def test_a_meet_is_exactly_what_both_allow(one: str, other: str) -> None:
    both = meet(one, other)
    assert both == meet(other, one)
    assert (allowed(both) if both else set()) == allowed(one) & allowed(other)
    if both:
        check(both)


@given(CAPABILITIES, CAPABILITIES, CAPABILITIES)
def test_meets_may_be_taken_in_any_order(one: str, other: str, third: str) -> None:
    def then(left: str | None, right: str | None) -> str | None:
        return meet(left, right) if left and right else None

    assert then(then(one, other), third) == then(one, then(other, third))
    assert meet(one, one) == one


@given(SETS, SETS)
def test_a_child_has_exactly_what_it_declares_of_its_parents(parent: list[str], declared: list[str]) -> None:
    child = attenuate(parent, declared)
    assert allowed(*child) == allowed(*parent) & allowed(*declared)
    assert all(covers(parent, one) and covers(declared, one) for one in child)


def test_a_child_of_a_pattern_may_declare_one_thing() -> None:
    assert attenuate(["HELP.brainstem.*"], ["HELP.brainstem.Clock"]) == ("HELP.brainstem.Clock",)
    assert attenuate(["HELP.brainstem.Clock"], ["HELP.*", "EGG"]) == ("HELP.brainstem.Clock",)
    assert attenuate(["HELP.brainstem"], ["EGG"]) == ()


@given(SETS)
def test_reduced_says_the_same_in_no_more_words(held: list[str]) -> None:
    fewer = reduced(held)
    assert allowed(*fewer) == allowed(*held)
    assert reduced(reversed(held)) == fewer == reduced(fewer)
    assert not any(covers([one], other) for one, other in itertools.permutations(fewer, 2))


def test_reduced_leaves_out_what_another_brings_along() -> None:
    assert reduced(["STREAM.a", "HELP.a", "HELP.a.*", "EGG", "EGG"]) == ("EGG", "HELP.a.*")


@pytest.mark.parametrize(
    "text",
    ["*", "EGG", "HELP", "HELP.*", "HELP.brainstem", "HELP.brainstem.Clock", "HELP.b.Clock.*", "HELP.a-b_c"],
)
def test_capabilities_are_accepted_as_they_are(text: str) -> None:
    assert check(text) == text


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("help.brainstem", "HELP.brainstem"),
        ("HELP/brainstem/Clock", "HELP.brainstem.Clock"),
        (" HELP.brainstem ", "HELP.brainstem"),
        ("HELP..brainstem.", "HELP.brainstem"),
        ("HELP.clo*", "HELP.clo"),
        ("egg", "EGG"),
    ],
)
def test_a_near_miss_is_told_what_to_type(text: str, instead: str) -> None:
    with pytest.raises(BadCapabilityError) as caught:
        check(text)
    assert caught.value.do == f"Type {instead} instead."
    assert check(instead) == instead


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        ".",
        "**",
        "HELP.*.Clock",
        "everything",
        "HELP.a.b.c.d",
        "HELP.ü",
        "HELP.a\n",
        "HELP." + "a" * 300,
        "*.a",
    ],
)
def test_others_are_shown_what_capabilities_look_like(text: str) -> None:
    with pytest.raises(BadCapabilityError) as caught:
        check(text)
    assert "HELP" in caught.value.do
    assert len(str(caught.value)) < 120


@given(st.text(max_size=40))
def test_any_text_is_a_capability_or_refused_in_words(text: str) -> None:
    try:
        assert check(text) == text
    except BadCapabilityError as refusal:
        if refusal.do.endswith(" instead."):
            check(refusal.do.removeprefix("Type ").removesuffix(" instead."))


def test_names_become_capabilities_and_never_patterns() -> None:
    assert capability("HELP", "brainstem", "Clock") == "HELP.brainstem.Clock"
    assert capability("EGG") == "EGG"
    for name in ("*", "a.b", "", "a b", "Clock\n"):
        with pytest.raises(BadCapabilityError):
            capability("HELP", "brainstem", name)
