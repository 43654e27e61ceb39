"""Killed, or failed by the disk, at any step: the old state or the new one, never half of each."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.twins.installer.a_home import GARDENER, AHome, egg, leftovers, lies
from tests.twins.installer.crash_scenarios import (
    CODE,
    DIED,
    NEEDS_ROOM,
    REFUSED,
    SCENARIOS,
    HatchIntoExisting,
    Scenario,
    die_at,
    in_child,
)

pytestmark = pytest.mark.forks


def _nothing(count: int, event: str) -> None:
    pass


@pytest.fixture(params=SCENARIOS, ids=lambda kind: kind.__name__)
def scenario(request: pytest.FixtureRequest, home: AHome, tmp_path: Path) -> Scenario:
    made: Scenario = request.param(home, tmp_path)
    return made


def _both_states(scenario: Scenario) -> tuple[dict[str, object], dict[str, object], int]:
    scenario.reset()
    old = scenario.state()
    ended, steps = in_child(scenario.act, _nothing)
    assert ended == 0
    new = scenario.state()
    assert old != new
    assert not leftovers(scenario.home.root)
    return old, new, steps


def _no_code_runs_unheld(home: AHome) -> None:
    """Code from the egg is held at any moment, if it lies there at all."""
    held = AHome(home.root).held
    for path in CODE:
        there = home.twin / path
        if there.exists() and there.read_bytes() == GARDENER[path]:
            assert f"twins/{home.twin.name}/{path}" in {hold.path for hold in held.listing()}


def test_killed_at_any_step(scenario: Scenario) -> None:
    old, new, steps = _both_states(scenario)
    assert steps > 20
    outcomes = []
    for number in range(1, steps + 1):
        home = scenario.reset()
        assert in_child(scenario.act, die_at(number))[0] == DIED
        _no_code_runs_unheld(home)
        scenario.recover()
        state = scenario.state()
        assert state in (old, new), f"killed at step {number}"
        assert not leftovers(home.root)
        assert scenario.recover() == []
        outcomes.append("new" if state == new else "old")
    assert set(outcomes) == {"old", "new"}
    decided = outcomes.index("new")
    assert set(outcomes[decided:]) == {"new"}, "what was decided once is finished, not taken back"


def test_killed_again_while_recovering(scenario: Scenario) -> None:
    old, new, steps = _both_states(scenario)
    for number in range(2, steps + 1, 13):
        for second in range(1, 40, 6):
            home = scenario.reset()
            in_child(scenario.act, die_at(number))
            if in_child(scenario.recover, die_at(second))[0] != DIED:
                break
            scenario.recover()
            assert scenario.state() in (old, new), f"killed at step {number}, then at {second}"
            assert not leftovers(home.root)


def test_one_step_fails(scenario: Scenario) -> None:
    old, new, steps = _both_states(scenario)
    refusals = 0
    for number in range(1, steps + 1, 2):
        home = scenario.reset()

        def fail(count: int, event: str, number: int = number) -> None:
            if count == number:
                how = errno.ENOSPC if number % 4 == 1 else errno.EACCES
                raise OSError(how, os.strerror(how), "somewhere")

        ended, _ = in_child(scenario.act, fail)
        assert ended in (0, REFUSED), f"failed at step {number}"
        refusals += ended == REFUSED
        state = scenario.state()
        left = leftovers(home.root)
        if left:
            scenario.recover()
            state = scenario.state()
        assert _files(state) == _files(old if ended == REFUSED else new), f"failed at step {number}"
        assert not leftovers(home.root)
    assert refusals >= 4


def test_the_disk_is_full_from_some_step_on(scenario: Scenario) -> None:
    """Nothing more can be written or made; renaming and removing still work, as on a real disk."""
    old, new, steps = _both_states(scenario)
    for number in range(1, steps + 1, 2):
        home = scenario.reset()

        def fail(count: int, event: str, number: int = number) -> None:
            if count >= number and event in NEEDS_ROOM:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        ended, _ = in_child(scenario.act, fail)
        assert ended in (0, REFUSED), f"full at step {number}"
        assert lies(home.twin) in _twins(old, new, scenario), f"full at step {number}"
        scenario.recover()
        assert scenario.state() == (old if ended == REFUSED else new), f"full at step {number}"
        assert not leftovers(home.root)


def _files(state: dict[str, object]) -> dict[str, object]:
    """Without folders: one that resists removal is told of and harms nobody."""
    return {path: content for path, content in state.items() if content != "folder"}


def _twins(old: dict[str, object], new: dict[str, object], scenario: Scenario) -> list[dict[str, object]]:
    prefix = f"twins/{scenario.home.twin.name}/"
    return [
        {
            path.removeprefix(prefix): content.encode()
            if isinstance(content, str) and content != "folder"
            else content
            for path, content in state.items()
            if path.startswith(prefix)
        }
        for state in (old, new)
    ]


def test_a_file_that_changes_before_recovery_is_not_lost(home: AHome) -> None:
    scenario = HatchIntoExisting(home, home.root)
    _, _, steps = _both_states(scenario)
    for number in range(1, steps + 1, 3):
        home = scenario.reset()
        in_child(scenario.act, die_at(number))
        (home.twin / "soul.md").unlink()
        (home.twin / "soul.md").write_bytes(b"written after the crash\n")
        scenario.recover()
        assert (home.twin / "soul.md").read_bytes() == b"written after the crash\n", (
            f"killed at step {number}"
        )
        assert not leftovers(home.root)


def test_the_next_hatching_clears_what_a_crash_left(home: AHome) -> None:
    scenario = HatchIntoExisting(home, home.root)
    _, new, steps = _both_states(scenario)
    for number in range(1, steps + 1, 5):
        home = scenario.reset()
        in_child(scenario.act, die_at(number))
        scenario.act()
        assert {path: content for path, content in scenario.state().items() if path.startswith("twins/")} == {
            path: content for path, content in new.items() if path.startswith("twins/")
        }
        assert not leftovers(home.root)


def test_a_journal_that_cannot_be_read_is_told_and_kept(home: AHome) -> None:
    staging = home.root / "twins" / ".hatch-20261121T094000Z-abcdef"
    home.live_in(staging, {"moving.json": b"{", "new/soul.md": b"x"})
    before = lies(staging)
    [found] = home.importer().recover()
    assert (found.folder, found.outcome) == (staging, "stuck")
    assert found.reason
    assert lies(staging) == before
    home.importer().hatch(egg(GARDENER))
    assert lies(staging) == before
