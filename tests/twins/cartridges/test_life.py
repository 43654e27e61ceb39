from __future__ import annotations

import copy
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.twins.cartridges.living_documents import Document, buddies
from twins.cartridges import buddy_state
from twins.cartridges.buddy_actions import Action, act
from twins.cartridges.buddy_state import at
from twins.cartridges.field_specs import STAGES
from twins.cartridges.json_documents import encode, parse, same
from twins.cartridges.shapes import checked

NOON = datetime(2026, 4, 12, 12, 0, tzinfo=UTC)

waits = st.lists(
    st.integers(0, 500_000).map(lambda tenths: timedelta(seconds=tenths / 10)), min_size=1, max_size=6
)
doings = st.lists(
    st.tuples(
        st.sampled_from(list(Action)),
        st.integers(0, 100_000),
        st.text(st.characters(codec="utf-8"), max_size=8),
        st.booleans(),
        st.integers(-3, 3),
    ),
    max_size=25,
)


def hatched(**organism: Any) -> Document:
    document = act(buddy_state.egg(NOON, name="Fluffy"), Action.FEED, NOON).document
    document["organism"] |= organism
    return document


def test_an_egg_waits_to_be_fed_and_does_nothing_else() -> None:
    egg = buddy_state.egg(NOON, name="Fluffy")
    assert checked(egg)
    for action in set(Action) - {Action.FEED}:
        lived = act(egg, action, NOON + timedelta(days=3), text="hello")
        assert not lived.changed
        assert lived.answer == "An egg. Feed it and it hatches."
        assert lived.document["organism"] == egg["organism"], "an egg does not hunger"
    lived = act(egg, Action.FEED, NOON + timedelta(hours=1))
    organism = lived.document["organism"]
    assert lived.answer == "The egg hatched. This is Fluffy."
    assert (organism["stage"], organism["energy"], organism["mood"], organism["xp"]) == (
        "hatchling",
        100,
        90,
        0,
    )
    assert organism["hatched_at"] == organism["last_fed"] == "2026-04-12T13:00:00.000Z"
    assert organism["memories"] == [{"type": "hatch", "at": "2026-04-12T13:00:00.000Z"}]


@pytest.mark.parametrize(
    ("name", "user", "called"),
    [
        ("???", None, "buddy-c0de"),
        ("???", "octo", "octo"),
        ("Fluffy", "octo", "Fluffy"),
        ("???", "", "buddy-c0de"),
    ],
)
def test_who_hatches_without_a_name_gets_one(name: str, user: str | None, called: str) -> None:
    egg = buddy_state.egg(NOON, name=name, github_user=user)
    assert act(egg, Action.FEED, NOON, entropy=b"\xc0\xde").document["organism"]["name"] == called


@pytest.mark.parametrize(
    ("action", "xp", "energy", "mood", "social", "counter"),
    [
        (Action.FEED, 1, 75, 55, 0, ""),
        (Action.PET, 1, 50, 65, 0, ""),
        (Action.EXPLORE, 3, 45, 50, 0, ""),
        (Action.POST, 10, 30, 50, 5, "posts_made"),
        (Action.COMMENT, 5, 40, 50, 3, "comments_made"),
        (Action.HEARTBEAT, 2, 50, 50, 0, "frames_survived"),
        (Action.REMEMBER, 3, 50, 50, 0, ""),
        (Action.RECALL, 1, 50, 50, 0, ""),
        (Action.STATUS, 0, 50, 50, 0, ""),
    ],
)
def test_what_each_action_brings_and_costs(
    action: Action, xp: int, energy: int, mood: int, social: int, counter: str
) -> None:
    organism = act(hatched(energy=50, mood=50), action, NOON, text="hello").document["organism"]
    assert (organism["xp"], organism["energy"], organism["mood"], organism["social"]) == (
        xp,
        energy,
        mood,
        social,
    )
    for key in ("posts_made", "comments_made", "frames_survived"):
        assert organism[key] == (key == counter)
    assert organism["last_action"] == ("feed" if action is Action.STATUS else action)


def test_exploring_finds_more_and_moods_spread() -> None:
    buddy = hatched(energy=50, mood=50)
    for pulse, mood in ((1, 55), (-1, 45), (7, 55), (0, 50)):
        organism = act(buddy, Action.EXPLORE, NOON, found=True, pulse=pulse).document["organism"]
        assert (organism["xp"], organism["mood"]) == (5, mood)


@pytest.mark.parametrize(("action", "needs"), [(Action.POST, 20), (Action.COMMENT, 10)])
def test_a_tired_buddy_does_not_write(action: Action, needs: int) -> None:
    tired = hatched(energy=needs - 1)
    lived = act(tired, action, NOON)
    assert not lived.changed
    assert lived.answer == f"Fluffy is too tired to {action}: energy {needs - 1} of {needs}. Feed it."
    assert act(hatched(energy=needs), action, NOON).document["organism"]["energy"] == 0


@pytest.mark.parametrize(
    ("xp", "stage", "becomes"),
    [
        (48, "hatchling", "hatchling"),
        (49, "hatchling", "juvenile"),
        (198, "juvenile", "juvenile"),
        (199, "juvenile", "adult"),
        (998, "adult", "adult"),
        (999, "adult", "elder"),
        (5000, "hatchling", "elder"),
        (0, "elder", "elder"),
        (-9, "hatchling", "hatchling"),
    ],
)
def test_experience_grows_and_never_reverts(xp: int, stage: str, becomes: str) -> None:
    lived = act(hatched(xp=xp, stage=stage), Action.PET, NOON)
    organism = lived.document["organism"]
    assert organism["stage"] == becomes
    evolved = {"type": "evolution", "to": becomes, "at": "2026-04-12T12:00:00.000Z"}
    assert (evolved in organism["memories"]) is (becomes != stage)


def test_words_for_people() -> None:
    assert act(hatched(), Action.STATUS, NOON).answer == (
        "Fluffy, a hatchling. Energy 100, happy. Experience 0 of 50 to be a juvenile."
    )
    assert (
        act(hatched(xp=199), Action.PET, NOON).answer
        == "Fluffy was petted. Energy 100, happy. It is an adult now."
    )
    assert act(hatched(stage="elder", xp=1200), Action.STATUS, NOON).answer.endswith("Experience 1200.")
    assert act(hatched(), Action.EXPLORE, NOON, found=True).answer.startswith(
        "Fluffy explored and found something."
    )
    assert (
        act(hatched(), Action.REMEMBER, NOON, text="  ").answer == "There was nothing for Fluffy to remember."
    )


@pytest.mark.parametrize(
    ("mood", "name"),
    [
        (100, "happy"),
        (80, "happy"),
        (79.5, "neutral"),
        (50, "neutral"),
        (25, "anxious"),
        (24.5, "sad"),
        (0, "sad"),
    ],
)
def test_moods_have_names(mood: float, name: str) -> None:
    assert buddy_state.mood_name(mood) == name


def test_time_makes_hungry_and_sad_by_the_minute() -> None:
    buddy = hatched(energy=30, mood=30)
    assert at(buddy, NOON + timedelta(seconds=59))["organism"] == buddy["organism"]
    later = at(buddy, NOON + timedelta(minutes=3, seconds=30))["organism"]
    assert (later["energy"], later["mood"]) == (27, 28.5)
    much_later = at(buddy, NOON + timedelta(days=365))["organism"]
    assert (much_later["energy"], much_later["mood"]) == (0, 0)


@given(waits, st.floats(0, 100), st.integers(0, 200).map(lambda half: half / 2))
def test_it_does_not_matter_how_often_somebody_looks(
    pauses: list[timedelta], energy: float, mood: float
) -> None:
    buddy = hatched(energy=round(energy), mood=mood)
    looked_at, now = buddy, NOON
    for pause in pauses:
        now += pause
        looked_at = at(looked_at, now)
    assert looked_at["organism"] == at(buddy, now)["organism"]


def test_a_clock_that_was_set_back_costs_nothing() -> None:
    buddy = hatched(energy=30)
    earlier = at(buddy, NOON - timedelta(days=1))
    assert earlier["organism"]["energy"] == 30
    assert at(earlier, NOON - timedelta(days=1) + timedelta(minutes=5))["organism"]["energy"] == 25


@pytest.mark.parametrize("as_of", [None, "soon", 5, "9999-99-99T00:00:00Z", "0001-01-01T00:00:00+14:00"])
def test_a_buddy_from_elsewhere_has_slept(as_of: Any) -> None:
    buddy = hatched(energy=30)
    buddy["_meta"]["as_of"] = as_of
    assert at(buddy, NOON + timedelta(days=9))["organism"]["energy"] == 30


@given(buddies, doings)
def test_whatever_happens_it_stays_a_buddy(document: Document, happenings: list[Any]) -> None:
    now, stage = NOON, STAGES.index(document["organism"].get("stage", "egg"))
    for action, seconds, text, found, pulse in happenings:
        now += timedelta(seconds=seconds)
        before = copy.deepcopy(document)
        lived = act(document, action, now, text=text, kind="said", found=found, pulse=pulse, entropy=b"ab")
        assert same(document, before), "the given document stays untouched"
        assert lived.changed or lived.document["organism"] == {
            **lived.document["organism"],
            **document["organism"],
        }
        document = parse(encode(lived.document))
        organism = document["organism"]
        checked(document)
        assert STAGES.index(organism["stage"]) >= stage
        stage = STAGES.index(organism["stage"])
        if organism["stage"] != "egg":
            assert 0 <= organism["energy"] <= 100
            assert 0 <= organism["mood"] <= 100
        assert lived.answer
    document = buddy_state.hear(document, "hello", "ada", now)
    assert len(document["organism"]["context_memory"]) <= max(
        buddy_state.CONTEXT_CAP, len(before_caps(document))
    )
    checked(buddy_state.exported(document, now))


def before_caps(document: Document) -> list[Any]:
    """An egg hears nothing, so its list may be as long as it came."""
    found: list[Any] = (
        document["organism"]["context_memory"] if document["organism"]["stage"] == "egg" else []
    )
    return found


def test_keeps_hundred_memories_and_last_ten_sayings() -> None:
    buddy = hatched()
    for number in range(103):
        buddy = act(buddy, Action.REMEMBER, NOON, text=f"day {number}", kind="diary").document
        buddy = buddy_state.hear(buddy, f"line {number}", "ada", NOON)
    organism = buddy["organism"]
    assert [organism["long_memory"][index]["text"] for index in (0, -1)] == ["day 3", "day 102"]
    assert len(organism["long_memory"]) == 100
    assert organism["long_memory"][-1]["type"] == "diary"
    assert organism["long_memory"][-1].keys() == {"text", "type", "saved_at", "mood", "stage"}
    assert [entry["text"] for entry in organism["context_memory"]] == [
        f"line {number}" for number in range(93, 103)
    ]
    assert organism["context_memory"][0] == {
        "text": "line 93",
        "at": "2026-04-12T12:00:00.000Z",
        "source": "ada",
    }


def test_it_recalls_by_words_the_latest_first() -> None:
    buddy = hatched()
    for text in ("Tomatoes are red", "tomatoes need WATER", "the cat is red"):
        buddy = act(buddy, Action.REMEMBER, NOON, text=text).document
    lived = act(buddy, Action.RECALL, NOON, text="tomatoes")
    assert [entry["text"] for entry in lived.found] == ["tomatoes need WATER", "Tomatoes are red"]
    assert lived.answer == "Fluffy remembers:\ntomatoes need WATER\nTomatoes are red"
    assert [entry["text"] for entry in act(buddy, Action.RECALL, NOON, text="RED cat").found] == [
        "the cat is red"
    ]
    assert act(buddy, Action.RECALL, NOON, text="dog").answer == "Fluffy remembers nothing of that."
    assert len(act(buddy, Action.RECALL, NOON).found) == 3


def test_export_is_settled_dated_and_machine_free() -> None:
    exported = buddy_state.exported(hatched(energy=50), NOON + timedelta(minutes=10))
    assert exported["_meta"]["exported_at"] == "2026-04-12T12:10:00.000Z"
    assert "as_of" not in exported["_meta"]
    assert exported["organism"]["energy"] == 40
