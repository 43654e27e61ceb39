"""Any order of verbs, edits, returns and crashes, against a model that is three words long per twin."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.fixtures.twin_states import State, state_of
from twins.errors import NoSuchTwinError, TwinConflictError
from twins.lifecycle import tombstones
from twins.lifecycle.selection import Selection
from twins.lifecycle.state_index import list_archived, list_purged
from twins.workspace.listing import scan
from twins.workspace.new_twin_staging import move_into_place, staged_twin

pytestmark = pytest.mark.forks

KINDS = ("personal", "project", "memorial")


@dataclass
class Expected:
    """A twin as it should be. ``state`` None: in ``.trash``."""

    name: str
    kind: str
    state: State | None
    content: dict[str, bytes]
    reason: str = ""
    tombstones: list[str] = field(default_factory=list)
    """Reasons of its purges."""


class Lives(RuleBasedStateMachine):
    """The disk must always tell the same as ``self.twins``."""

    tools: ClassVar[Any]
    keys = Bundle("keys")

    def __init__(self) -> None:
        super().__init__()
        self.root = Path(tempfile.mkdtemp())
        make_home, make_runner, self.killed_at = self.tools
        self.runner = make_runner()
        self.home = make_home(self.root / "home", self.runner)
        self.twins: dict[str, Expected] = {}
        self.count = 0

    def teardown(self) -> None:
        self.runner.close()
        shutil.rmtree(self.root)

    # Lives.

    @rule(
        target=keys, name=st.sampled_from(["Test", "Tester", "Garden", "Garden"]), kind=st.sampled_from(KINDS)
    )
    def mint(self, name: str, kind: str) -> str:
        twin = self.home.mint(name, kind=kind)
        self.twins[twin.key] = Expected(name, kind, State.ACTIVE, self.home.content(twin.workspace.root))
        return str(twin.key)

    @rule(key=keys, text=st.text("ab", max_size=3))
    def remember(self, key: str, text: str) -> None:
        expected = self.twins[key]
        if expected.state is State.ACTIVE:
            (self.home.places.active(key) / ".brainstem_data" / "memory.json").write_text(text)
            expected.content[".brainstem_data/memory.json"] = text.encode()

    @rule(key=keys)
    def boot(self, key: str) -> None:
        if self.twins[key].state is State.ACTIVE and not self.runner.presence(key).running:
            self.runner.boot(key)

    @rule(key=keys, into_archive=st.booleans())
    def hatch_again(self, key: str, into_archive: bool) -> None:
        """A purged twin comes back from an egg, or with a snapshot that held archived ones."""
        expected = self.twins[key]
        if expected.state is not State.PURGED:
            return
        places = self.home.places
        if (
            into_archive
        ):  # where a purge that was killed may have left the rest of a body, until the next start
            self.home.do("recover")
        with staged_twin(places, key) as staged:
            for name, octets in expected.content.items():
                (staged / name).parent.mkdir(parents=True, exist_ok=True)
                (staged / name).write_bytes(octets)
            if into_archive:
                [tombstone] = [entry for entry in list_purged(places) if entry["hash"] == key]
                # The record that it had when it was purged, so that only its place tells it from then.
                record = tombstones.archived_record(
                    rappid=tombstone["rappid"], key=key, name=expected.name, kind=expected.kind,
                    at=self.home.now, by="operator", reason=expected.reason, last_known={"alive_at_archive": False},
                )  # fmt: skip
                (staged / "archived.json").write_bytes(tombstones.encode(record))
            move_into_place(staged, places.archived(key) if into_archive else places.active(key))
        expected.state = State.ARCHIVED if into_archive else State.ACTIVE

    @rule(key=keys, suffix=st.sampled_from(["", "-20260601-101500"]))
    def roll_back(self, key: str, suffix: str) -> None:
        """Does what the published hatcher does to a twin."""
        expected = self.twins[key]
        if expected.state is State.ACTIVE and not self.runner.presence(key).running:
            trash = self.home.places.twins / ".trash"
            trash.mkdir(exist_ok=True)
            self.home.places.active(key).rename(trash / f"{key}{suffix}")
            expected.state = None

    # Verbs.

    def act(self, verb: str, key: str, reason: str) -> None:
        kwargs: dict[str, Any] = {} if verb == "unarchive" else {"reason": reason}
        if verb == "purge":
            kwargs["confirm"] = True
        self.home.do(verb, key, **kwargs)

    def outcome(self, verb: str, key: str, reason: str) -> None:
        expected = self.twins[key]
        if verb == "archive":
            expected.state, expected.reason = State.ARCHIVED, reason
        elif verb == "unarchive":
            expected.state = State.ACTIVE
        else:
            expected.state = State.PURGED
            expected.tombstones.append(reason)

    def allows(self, verb: str, key: str) -> bool:
        needs = State.ACTIVE if verb == "archive" else State.ARCHIVED
        return self.twins[key].state is needs

    def a_reason(self) -> str:
        self.count += 1
        return f"reason {self.count}"

    @rule(key=keys, verb=st.sampled_from(["archive", "unarchive", "purge"]))
    def say(self, key: str, verb: str) -> None:
        reason = self.a_reason()
        if self.allows(verb, key):
            self.act(verb, key, reason)
            self.outcome(verb, key, reason)
        else:
            with pytest.raises((TwinConflictError, NoSuchTwinError)):
                self.act(verb, key, reason)

    @rule(key=keys)
    def ask_about_purging(self, key: str) -> None:
        if self.twins[key].state is State.ARCHIVED:
            result = self.home.do("purge", key)
            assert [one["hash"] for one in result["would_purge"]] == [key]
            assert result["mode"] == "dry-run"

    @rule(key=keys, verb=st.sampled_from(["archive", "unarchive", "purge"]), step=st.integers(0, 70))
    def crash(self, key: str, verb: str, step: int) -> None:
        if not self.allows(verb, key):
            return
        reason = self.a_reason()
        before = self.twins[key].state
        # A child that is killed cannot bury what it stopped, so the twin sleeps.
        if self.runner.presence(key).running:
            self.runner.running[key].kill()
            self.runner.running[key].wait()
        self.killed_at(step, lambda: self.act(verb, key, reason))
        if state_of(self.home.places, key) is not before:
            self.outcome(verb, key, reason)

    @rule()
    def recover(self) -> None:
        self.home.do("recover")
        assert self.home.leftovers() == []

    @rule(
        kind=st.none() | st.sampled_from(KINDS),
        prefix=st.sampled_from(["T", "Test", "Gard", "x"]),
        exclude=st.none() | st.sampled_from(KINDS),
        confirm=st.booleans(),
    )
    def say_to_many(self, kind: str | None, prefix: str, exclude: str | None, confirm: bool) -> None:
        reason = self.a_reason()
        meant = {
            key
            for key, expected in self.twins.items()
            if expected.state is State.ACTIVE
            and expected.name.startswith(prefix)
            and kind in (None, expected.kind)
            and expected.kind != exclude
        }
        given: dict[str, Any] = {"name_prefix": prefix}
        given |= {"kind": kind} if kind else {}
        given |= {"exclude_kinds": [exclude]} if exclude else {}
        result = self.home.do(
            "archive_matching", Selection.from_filter(given), confirm=confirm, reason=reason
        )
        assert result["errors"] == []
        assert {one["hash"] for one in result["archived" if confirm else "would_archive"]} == meant
        if confirm:
            for key in meant:
                self.outcome("archive", key, reason)

    @rule()
    def migrate(self) -> None:
        result = self.home.do("migrate")
        assert result["left"] == []
        trashed = {key for key, expected in self.twins.items() if expected.state is None}
        assert {one["hash"] for one in result["archived"]} == trashed
        for key in trashed:
            self.outcome("archive", key, "migrated from .trash convention")

    # What must be so after every step.

    @invariant()
    def the_disk_tells_the_same(self) -> None:
        places = self.home.places

        def keys_of(state: State) -> set[str]:
            return {key for key, expected in self.twins.items() if expected.state is state}

        archived = {entry["hash"]: entry for entry in list_archived(places)}
        tombs = {entry["hash"]: entry for entry in list_purged(places)}
        assert {twin.key for twin in scan(places).twins} == keys_of(State.ACTIVE)
        assert set(archived) == keys_of(State.ARCHIVED)
        assert set(tombs) == {key for key, expected in self.twins.items() if expected.tombstones}
        for key, expected in self.twins.items():
            if expected.state is not None:
                assert state_of(places, key) is expected.state
            if expected.tombstones:
                assert tombs[key]["purged_reason"] == expected.tombstones[-1]
                assert "note" not in tombs[key]
            if expected.state is State.ARCHIVED:
                assert archived[key].get("archived_reason", "") == expected.reason
                assert "note" not in archived[key]
                assert not self.runner.presence(key).running
            if expected.state in (State.ACTIVE, State.ARCHIVED):
                place = places.active(key) if expected.state is State.ACTIVE else places.archived(key)
                assert self.home.content(place) == expected.content


def test_any_order_of_events_keeps_every_twin_in_one_state(home: Any, killed_at: Any) -> None:
    class Here(Lives):
        tools = (type(home), type(home.runner), killed_at)

    run_state_machine_as_test(Here, settings=settings(max_examples=25, stateful_step_count=40, deadline=None))
