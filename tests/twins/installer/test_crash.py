"""Killed, or failed by the disk, at any step: the old state or the new one, never half of each.

A step is whatever changes a file: opening one for writing, renaming, linking, removing, making a folder.
The interpreter tells of each before it happens; there the child process dies, or the disk says no.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import struct
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.twins.installer.a_home import GARDENER, LATER, NOW, AHome, egg, leftovers, lies, part
from twins.eggs import frames
from twins.eggs.parsed_egg import Destination, Role
from twins.errors import TwinError
from twins.installer.errors import DiskFullError, NotWritableError
from twins.workspace.workspace import Workspace

DIED, REFUSED, BROKE = 9, 7, 1
_STEPS = frozenset({"os.rename", "os.link", "os.mkdir", "os.remove", "os.rmdir", "os.truncate"})
_NEEDS_ROOM = frozenset({"os.link", "os.mkdir", "open"})
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")

SAID = b"".join(frames.encoded(frames.chained("s", [("2026-11-21T09:00:00Z", "user", {"text": "dry?"})])))
MINE = {
    "rappid.json": GARDENER["rappid.json"],
    "soul.md": b"mine\n",
    ".brainstem_data/memory.json": b'{"mine": 1}',
    "agents/water_agent.py": b"mine = 1\n",
}
CODE = ("agents/water_agent.py", "services/pump_service.py")


class Scenario:
    """One thing to do in a home, from a state that is made anew for every try."""

    def __init__(self, home: AHome, elsewhere: Path) -> None:
        self.home = home
        home.root.joinpath("twins").mkdir()
        home.receipts.mkdir(parents=True)
        self.prepare()
        self._template = home.root.with_name("template")
        shutil.copytree(home.root, self._template, symlinks=True)

    def prepare(self) -> None:
        """What is there before."""

    def act(self) -> None:
        """What is done."""
        raise NotImplementedError

    def reset(self) -> AHome:
        shutil.rmtree(self.home.root)
        shutil.copytree(self._template, self.home.root, symlinks=True)
        self.home = AHome(self.home.root)
        return self.home

    def state(self) -> dict[str, object]:
        """Everything in the home, whatever the hatchings are called, and what is held."""
        found = {
            _ID.sub("ID", path): _ID.sub("ID", content.decode()) if isinstance(content, bytes) else content
            for path, content in lies(self.home.root, without=lambda path: path == "held.json").items()
        }
        return {**found, "held": sorted(hold.path for hold in AHome(self.home.root).held.listing())}

    def recover(self) -> list[str]:
        return [found.outcome for found in AHome(self.home.root).importer().recover()]


class HatchNew(Scenario):
    def act(self) -> None:
        said = part(".brainstem_data/frames.json", SAID, Role.CONVERSATIONS)
        self.home.importer().hatch(egg(GARDENER, said), now=NOW)


class HatchIntoExisting(Scenario):
    def prepare(self) -> None:
        self.home.live_in(self.home.twin, MINE)

    def act(self) -> None:
        self.home.importer().hatch(egg(GARDENER), overwrite=["soul", "agents", "memory"], now=NOW)


class RollBackNew(Scenario):
    def prepare(self) -> None:
        self.home.importer().hatch(egg(GARDENER), now=NOW)

    def act(self) -> None:
        self.home.importer().rollback("2026", now=LATER)


class RollBackAll(HatchIntoExisting):
    def prepare(self) -> None:
        super().prepare()
        super().act()
        (self.home.twin / "services/pump_service.py").write_bytes(b"edited = 1\n")

    def act(self) -> None:
        self.home.importer().rollback("2026", even_if_changed=True, now=LATER)


class GraftOnAnotherDisk(Scenario):
    """The brainstem's agents lie on another disk, where a rename cannot reach."""

    def __init__(self, home: AHome, elsewhere: Path) -> None:
        self.elsewhere = elsewhere / "agents"
        if elsewhere.stat().st_dev == home.root.stat().st_dev:
            pytest.skip("there is no other disk here")
        super().__init__(home, elsewhere)

    def prepare(self) -> None:
        self.home.brainstem.mkdir()
        self.host = Workspace.at(self.home.brainstem, agents=str(self.elsewhere))

    def reset(self) -> AHome:
        shutil.rmtree(self.elsewhere, ignore_errors=True)
        self.elsewhere.mkdir()
        (self.elsewhere / "k_agent.py").write_bytes(b"mine = 1\n")
        return super().reset()

    def state(self) -> dict[str, object]:
        return {**super().state(), "elsewhere": lies(self.elsewhere)}

    def act(self) -> None:
        files = {
            "agents/k_agent.py": b"x = 1\n",
            "agents/l_agent.py": b"y = 1\n",
            "services/k_service.py": b"z = 1\n",
        }
        graft = egg(files, destination=Destination.HOST, name="k")
        self.home.importer(host=self.host).hatch(graft, overwrite=["agents"], now=NOW)


SCENARIOS = [HatchNew, HatchIntoExisting, RollBackNew, RollBackAll, GraftOnAnotherDisk]


def _in_child(work: Callable[[], object], on_step: Callable[[int, str], None]) -> tuple[int, int]:
    """Runs ``work`` in a child process that calls ``on_step(number, event)`` before each change of a file.

    Returns (how it ended, how many steps there were).
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        count = 0

        def hook(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal count
            if event == "open":
                flags = arguments[2]
                if not isinstance(flags, int) or not flags & _WRITES:
                    return
            elif event not in _STEPS:
                return
            count += 1
            os.pwrite(number_file, struct.pack("I", count), 0)
            on_step(count, event)

        ended = BROKE
        number_file = os.memfd_create("steps")
        try:
            sys.addaudithook(hook)
            work()
            ended = 0
        except (DiskFullError, NotWritableError):
            ended = REFUSED
        except TwinError:
            traceback.print_exc()
        except BaseException:
            traceback.print_exc()
        finally:
            os.write(writing, os.pread(number_file, 4, 0))
            os._exit(ended)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        told = pipe.read()
    ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return ended, struct.unpack("I", told)[0] if told else 0


def _die_at(number: int) -> Callable[[int, str], None]:
    def on_step(count: int, event: str) -> None:
        if count == number:
            os._exit(DIED)

    return on_step


def _nothing(count: int, event: str) -> None:
    pass


@pytest.fixture(params=SCENARIOS, ids=lambda kind: kind.__name__)
def scenario(request: pytest.FixtureRequest, home: AHome, tmp_path: Path) -> Scenario:
    made: Scenario = request.param(home, tmp_path)
    return made


def _both_states(scenario: Scenario) -> tuple[dict[str, object], dict[str, object], int]:
    scenario.reset()
    old = scenario.state()
    ended, steps = _in_child(scenario.act, _nothing)
    assert ended == 0
    new = scenario.state()
    assert old != new
    assert not leftovers(scenario.home.root)
    return old, new, steps


def _no_code_runs_unheld(home: AHome) -> None:
    """Whatever the moment, code from the egg is held if it lies there at all."""
    held = AHome(home.root).held
    for path in CODE:
        there = home.twin / path
        if there.exists() and there.read_bytes() == GARDENER[path]:
            assert f"twins/{home.twin.name}/{path}" in {hold.path for hold in held.listing()}


def test_killed_at_any_step(scenario: Scenario) -> None:
    old, new, steps = _both_states(scenario)
    assert steps > 20
    outcomes = set()
    for number in range(1, steps + 1):
        home = scenario.reset()
        assert _in_child(scenario.act, _die_at(number))[0] == DIED
        _no_code_runs_unheld(home)
        scenario.recover()
        state = scenario.state()
        assert state in (old, new), f"killed at step {number}"
        assert not leftovers(home.root)
        assert scenario.recover() == []
        outcomes.add("new" if state == new else "old")
    assert outcomes == {"old", "new"}


def test_killed_again_while_recovering(scenario: Scenario) -> None:
    old, new, steps = _both_states(scenario)
    for number in range(2, steps + 1, 13):
        for second in range(1, 40, 6):
            home = scenario.reset()
            _in_child(scenario.act, _die_at(number))
            if _in_child(scenario.recover, _die_at(second))[0] != DIED:
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

        ended, _ = _in_child(scenario.act, fail)
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
            if count >= number and event in _NEEDS_ROOM:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        ended, _ = _in_child(scenario.act, fail)
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
        _in_child(scenario.act, _die_at(number))
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
        _in_child(scenario.act, _die_at(number))
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
