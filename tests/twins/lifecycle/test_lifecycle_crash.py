"""Verbs killed before every step: the twin is in one state, whole, and the next verb finds nothing odd."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.twin_states import State, state_of
from twins.errors import TwinConflictError
from twins.lifecycle import tombstones
from twins.lifecycle.state_index import list_archived, list_purged
from twins.workspace.listing import scan
from twins.workspace.new_twin_staging import move_into_place, staged_twin

pytestmark = pytest.mark.forks

KilledAt = Callable[[int, Callable[[], object]], bool]

BEFORE_AND_AFTER = {
    "archive": (State.ACTIVE, State.ARCHIVED),
    "unarchive": (State.ARCHIVED, State.ACTIVE),
    "purge": (State.ARCHIVED, State.PURGED),
}


class Case:
    """A twin in one home, about to undergo a verb."""

    def __init__(self, home: Any, verb: str) -> None:
        self.home, self.verb = home, verb
        self.before, self.after = BEFORE_AND_AFTER[verb]
        twin = home.mint("Gardener")
        self.key = twin.key
        # Its second time round: an older archived.json and an older tombstone must not be mistaken for new.
        home.do("archive", self.key, reason="first", now=home.now)
        older = home.places.tombstone(self.key)
        [entry] = list_archived(home.places)
        older.write_bytes(
            tombstones.encode(
                tombstones.purged_record(entry, at=home.now, by="operator", reason="an earlier life")
            )
        )
        if self.before is State.ACTIVE:
            home.do("unarchive", self.key)
        self.content = home.content(self.place(self.before))
        self.checkpoints = home.places.eggs / "checkpoints" / self.key
        self.checkpoints.mkdir(parents=True)
        for name in ("2020-11-21T09-40-00.000Z.egg", "2020-11-21T09-40-00.000Z.json", ".half.tmp"):
            (self.checkpoints / name).write_text("all that it was")
        self.save("untouched")

    def save(self, name: str) -> None:
        root = self.home.places.home
        shutil.copytree(root, root.with_name(f"{root.name}-{name}"))

    def rewind(self, name: str) -> None:
        root = self.home.places.home
        shutil.rmtree(root)
        shutil.copytree(root.with_name(f"{root.name}-{name}"), root)

    def place(self, state: State) -> Path:
        places = self.home.places
        return places.active(self.key) if state is State.ACTIVE else places.archived(self.key)

    def act(self) -> Any:
        kwargs: dict[str, Any] = {"reason": "second"} if self.verb != "unarchive" else {}
        return self.home.do(
            self.verb, self.key, **kwargs, **({"confirm": True} if self.verb == "purge" else {})
        )

    def check(self) -> State:
        """The state, after checking that it is exactly one, and whole."""
        places = self.home.places
        state = state_of(places, self.key)
        assert state in (self.before, self.after)
        active = [twin.key for twin in scan(places).twins]
        archived = [entry["hash"] for entry in list_archived(places)]
        assert active == ([self.key] if state is State.ACTIVE else [])
        assert archived == ([self.key] if state is State.ARCHIVED else [])
        if state is State.PURGED:
            [entry] = list_purged(places)
            tombstones.check(entry, tombstones.PURGED_SCHEMA)
            assert entry["purged_reason"] == "second"
        else:
            assert self.home.content(self.place(state)) == self.content
        if state is State.ARCHIVED:
            [entry] = list_archived(places)
            assert "note" not in entry
            assert entry["archived_reason"] == ("second" if self.verb == "archive" else "first")
        return state

    def check_settled(self, state: State) -> None:
        """Checks that nothing of the verb is left but its outcome."""
        assert self.check() is state
        assert self.home.leftovers() == []
        assert self.place(State.ACTIVE).exists() == (state is State.ACTIVE)
        assert self.place(State.ARCHIVED).exists() == (state is State.ARCHIVED)
        assert self.checkpoints.exists() == (state is not State.PURGED)
        assert state is State.PURGED or len(list(self.checkpoints.iterdir())) == 3

    def finish(self, state: State) -> None:
        """The verb again: done where it was not, refused where it was."""
        if state is self.before:
            self.act()
        else:
            with pytest.raises(TwinConflictError):
                self.act()
        self.check_settled(self.after)


@pytest.mark.parametrize("verb", BEFORE_AND_AFTER)
def test_killed_operation_leaves_one_state_and_repeats(verb: str, home: Any, killed_at: KilledAt) -> None:
    case = Case(home, verb)
    step, seen = 0, set()
    while killed_at(step, case.act):
        state = case.check()
        seen.add(state)
        if step % 2:
            home.do("recover")
            case.check_settled(state)
        case.finish(state)
        case.rewind("untouched")
        step += 1
    case.check_settled(case.after)
    assert seen == {case.before, case.after}


@pytest.mark.timeout(1200)  # some 150 processes are killed
@pytest.mark.parametrize(("verb", "crashes"), [("archive", 3), ("purge", 6)])
def test_a_recovery_killed_at_any_step_is_recovered_from(
    verb: str, crashes: int, home: Any, killed_at: KilledAt
) -> None:
    case = Case(home, verb)
    tried = set()
    step = 0
    while killed_at(step, case.act):
        state = case.check()
        # The last parts of the names that the verb laid down for itself tell the crashes apart.
        crash = (state, *sorted(name.rsplit(".", 1)[-1] for name in home.leftovers()))
        if len(crash) > 1 and crash not in tried:
            tried.add(crash)
            case.save(f"crash-{step}")
            inner = 0
            while killed_at(inner, lambda: home.do("recover")):
                assert case.check() is state
                home.do("recover")
                case.check_settled(state)
                case.rewind(f"crash-{step}")
                inner += 1
            case.check_settled(state)
        case.rewind("untouched")
        step += 1
    assert len(tried) == crashes


def test_twin_restored_into_unfinished_purge_stays(home: Any, killed_at: KilledAt) -> None:
    case = Case(home, "purge")
    step = came_back = 0
    while killed_at(step, case.act):
        place = case.place(State.ARCHIVED)
        if case.check() is State.PURGED and not place.exists():
            with staged_twin(home.places, case.key) as staged:
                for name, octets in case.content.items():
                    (staged / name).parent.mkdir(parents=True, exist_ok=True)
                    (staged / name).write_bytes(octets)
                move_into_place(staged, place)
            for _ in range(2):
                assert state_of(home.places, case.key) is State.ARCHIVED
                assert [entry["hash"] for entry in list_archived(home.places)] == [case.key]
                assert home.content(place) == case.content
                home.do("recover")
            assert home.leftovers() == []
            came_back += 1
        case.rewind("untouched")
        step += 1
    assert came_back
