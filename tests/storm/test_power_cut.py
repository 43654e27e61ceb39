"""Power cuts, on a disk that really loses what was not synced: what a daemon answered, and half a hatching.

A short round of each belongs to the whole suite; ``make storm`` repeats them for as long as ``STORM_SECONDS`` says.
"""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from fixtures.load import Load
from fixtures.power_cut import CuttableDisk, cuttable_disk
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import lives

from agents.runtimes.python.pools.started_processes import descendants
from agents.storage.atomic_write import write_atomically
from agents.storage.safe_fs import SafeTree
from rappd.store.write_ahead_log import SYNC_SECONDS
from tests.storm.storm import SECONDS, rounds
from tests.twins.installer.a_home import AHome, leftovers
from tests.twins.installer.crash_scenarios import (
    DIED,
    HatchIntoExisting,
    HatchNew,
    RollBackAll,
    Scenario,
    in_child,
)
from twins.workspace.agent_files import AgentFiles
from twins.workspace.workspace import Workspace

SYNC_SLACK = 2.0
"""A sync that began in time, on a machine that does other things, too."""
SAMPLES = 16

pytestmark = [
    pytest.mark.needs_root,
    pytest.mark.timeout(600 + int(SECONDS)),
    pytest.mark.own_process(zygote=True),
]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[CuttableDisk]:
    with cuttable_disk(tmp_path) as made:
        yield made


def cut_under_load(disk: CuttableDisk, daemon: RunningDaemon, load: Load, moment: float) -> float:
    """Cuts the disk off while visitors talk, ends the daemon, and gives the moment of the cut."""
    daemon.start()
    assert daemon.process is not None
    before = len(load.answered)
    time.sleep(1.5 * SYNC_SECONDS)  # what the start wrote is synced: else the load would meet its sync
    with load.talking():
        daemon.wait_for(partial(load.has, before + 1), what="a first answer")
        time.sleep(moment)  # the moment is what the test is about
        at = time.monotonic()
        disk.cut()
        below = descendants(daemon.process.pid)
        daemon.kill()
    daemon.wait_for(lambda: not any(map(lives, below)), what="template and workers to end with the daemon")
    disk.back()
    return at


def test_disk_loses_what_was_not_synced(disk: CuttableDisk) -> None:
    (disk.root / "unsynced").write_text("x")
    with (disk.root / "synced").open("w") as file:
        file.write("y")
        file.flush()
        os.fsync(file.fileno())
    (disk.root / "later").write_text("z")
    disk.cut()
    with pytest.raises(OSError, match="Input/output error"):
        (disk.root / "after").write_text("z")
    disk.back()
    assert (disk.root / "synced").read_text() == "y"
    assert not (disk.root / "later").exists()


WRITERS: dict[str, Callable[[Path], object]] = {
    "home": lambda root: write_atomically(root / "a" / "b" / "file", b"kept"),
    "workspace": lambda root: SafeTree(root).write_durably(("a", "b", "file"), b"kept"),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_first_file_of_a_new_folder_survives(disk: CuttableDisk, writer: str) -> None:
    WRITERS[writer](disk.root)
    disk.cut()
    disk.back()
    assert (disk.root / "a" / "b" / "file").read_bytes() == b"kept"


def test_placed_agent_file_survives(disk: CuttableDisk) -> None:
    workspace = Workspace.at(disk.root / "brainstem")
    workspace.create()
    synced(disk)
    files = AgentFiles(workspace)
    for source in (b"x = 1\n", b"x = 2\n"):
        name, staged = files.stage("tea_agent.py", source)
        files.place(name, staged, reason="imported")
    disk.cut()
    disk.back()
    assert files.read("tea_agent.py") == b"x = 2\n"
    assert [one.reason for one in files.generations("tea_agent.py")] == ["imported"]


def test_strict_store_loses_no_answer(disk: CuttableDisk) -> None:
    chance = random.Random(3)
    daemon = RunningDaemon(disk.root / "home", LLM_FAKE="1", RAPPD_STORE_STRICT="1")
    load = Load(daemon)
    for _ in rounds(0.25, least=2):
        cut_under_load(disk, daemon, load, chance.uniform(0, 0.8))  # before the sync that comes by itself
        assert not load.lost()
        verified = daemon.cli("threads", "verify")
        assert verified.returncode == 0, verified.stdout + verified.stderr


def test_default_store_loses_the_last_second_at_most(disk: CuttableDisk) -> None:
    chance = random.Random(5)
    daemon = RunningDaemon(disk.root / "home", LLM_FAKE="1")
    load = Load(daemon)
    for _ in rounds(0.25):
        at = cut_under_load(disk, daemon, load, chance.uniform(0.5, 4.0))
        verified = daemon.cli("threads", "verify")
        assert verified.returncode == 0, verified.stdout + verified.stderr
        for turn in load.lost():
            assert at - load.answered_at[turn] < SYNC_SECONDS + SYNC_SLACK
            del load.answered[turn]
        daemon.start()
        assert not daemon.get("/operator/status", control=True).json()["anchor"]["problems"]
        load.check_record()
        daemon.stop()


@pytest.mark.parametrize("kind", [HatchNew, HatchIntoExisting, RollBackAll])
def test_power_cut_at_any_step_leaves_one_state(disk: CuttableDisk, kind: type[Scenario]) -> None:
    scenario = kind(AHome(disk.root / "home"), disk.root)
    scenario.reset()
    old = scenario.state()
    ended, steps = in_child(scenario.act, lambda count, event: None)
    assert ended == 0
    new = scenario.state()
    chance = random.Random(7)
    numbers = chance.sample(range(1, steps + 1), steps)
    outcomes = set()
    for number, _ in zip(numbers, rounds(0.06, least=SAMPLES), strict=False):
        scenario.reset()
        synced(disk)
        assert in_child(scenario.act, cut_at(disk, number))[0] == DIED
        disk.back()
        scenario.recover()
        state = scenario.state()
        assert state in (old, new), f"cut off before step {number} of {steps}"
        assert not leftovers(scenario.home.root)
        outcomes.add("new" if state == new else "old")
    assert outcomes == {"old", "new"}


def test_journal_of_a_hatching_survives_once_moves_begin(disk: CuttableDisk) -> None:
    scenario = HatchIntoExisting(AHome(disk.root / "home"), disk.root)
    scenario.reset()
    assert in_child(scenario.act, lambda count, event: None)[0] == 0
    new = scenario.state()
    scenario.reset()
    synced(disk)

    def cut_at_first_move(count: int, event: str) -> None:
        if any(disk.root.glob("home/twins/.hatch-*/moving.json")):
            disk.cut()
            os._exit(DIED)

    assert in_child(scenario.act, cut_at_first_move)[0] == DIED
    disk.back()
    assert list(disk.root.glob("home/twins/.hatch-*/moving.json")), "its name is on the disk"
    assert scenario.recover() == ["finished"]
    assert scenario.state() == new


def test_hatching_that_was_reported_survives(disk: CuttableDisk) -> None:
    scenario = HatchNew(AHome(disk.root / "home"), disk.root)
    scenario.reset()
    synced(disk)
    scenario.act()
    new = scenario.state()
    disk.cut()
    disk.back()
    scenario.recover()
    assert scenario.state() == new


def synced(disk: CuttableDisk) -> None:
    """Has everything on the disk."""
    subprocess.run(["sync", "-f", disk.root], check=True)


def cut_at(disk: CuttableDisk, number: int) -> Callable[[int, str], None]:
    """Cuts the disk off, and ends the process, before step ``number``."""

    def on_step(count: int, event: str) -> None:
        if count == number:
            disk.cut()
            os._exit(DIED)

    return on_step
