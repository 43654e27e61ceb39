"""``rappd neighborhood schedule`` with a real daemon: missed moments, failures that stay visible, retention."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon

from neighborhoods.snapshot.snapshot_folder import SnapshotFolder
from tests.neighborhoods.snapshot.machines import Machine


@pytest.fixture
def stick(idle: RunningDaemon, tmp_path: Path) -> Path:
    """A member that is a folder, written down in peers.json."""
    folder = tmp_path / "stick"
    Machine(folder, "stick").twin("rose")
    idle.home.mkdir(mode=0o700, exist_ok=True)
    (idle.home / "peers.json").write_text(json.dumps({"peers": [{"name": "stick", "folder": str(folder)}]}))
    return folder


def scheduled(daemon: RunningDaemon) -> Any:
    return json.loads(daemon.cli("neighborhood", "schedule", "--json").stdout)["schedule"]


def snapshots(daemon: RunningDaemon) -> list[dict[str, Any]]:
    return list(json.loads(daemon.cli("neighborhood", "snapshots", "--json").stdout)["snapshots"])


def miss_and_run(daemon: RunningDaemon, days: int = 3) -> Any:
    """Stops the daemon, lets moments pass, starts it, and waits for the run; the schedule as it is then."""
    daemon.stop()
    before = ended(daemon)
    with closing(sqlite3.connect(daemon.home / "rappd.db")) as store, store:
        store.execute("UPDATE timers SET next = next - ?", (days * 86_400,))
    daemon.start()
    daemon.wait_for(lambda: ended(daemon) != before, what="the scheduled snapshot")
    return scheduled(daemon)


def begins_and_lasts(idle: RunningDaemon, stick: Path) -> None:
    """Starts the daemon with a scheduled snapshot due that takes a while."""
    idle.start()
    idle.cli("neighborhood", "schedule", "every", "6", "hours")
    idle.stop()
    with closing(sqlite3.connect(idle.home / "rappd.db")) as store, store:
        store.execute("UPDATE timers SET next = next - ?", (86_400,))
    [twin] = [path for path in (stick / "twins").iterdir() if path.name[0] != "."]
    for number in range(2000):  # so that it lasts
        (twin / f"note{number}.md").write_text("x")
    idle.start()


def ended(daemon: RunningDaemon) -> float:
    """The end of the last run. Screens have whole seconds, and two runs may end in one."""
    with closing(sqlite3.connect(daemon.home / "rappd.db")) as store:
        (last,) = store.execute("SELECT last FROM timers").fetchone()
    return float(last)


def test_schedule_is_shown_changed_and_switched_off(idle: RunningDaemon) -> None:
    assert "No snapshots are scheduled" in idle.cli("neighborhood", "schedule").stdout
    refused = idle.cli("neighborhood", "schedule", "daily", "03:00")
    assert (refused.returncode, "rappd start" in refused.stderr) == (3, True)
    idle.start()
    done = idle.cli("neighborhood", "schedule", "daily", "03:00", "--zone", "Europe/Berlin", "--json")
    assert json.loads(done.stdout)["schedule"] | {"next": ""} == {
        "rule": "daily 03:00", "zone": "Europe/Berlin", "keep": 7, "next": "", "last": "", "outcome": "",
        "failed_since": "", "missed": False,
    }  # fmt: skip
    assert idle.cli("neighborhood", "schedule", "--keep", "2").returncode == 0
    assert (scheduled(idle)["keep"], scheduled(idle)["zone"]) == (2, "Europe/Berlin")
    wrong = idle.cli("neighborhood", "schedule", "sometimes", "--json")
    assert (wrong.returncode, "daily 03:00" in json.loads(wrong.stderr)["do"]) == (2, True)
    assert idle.cli("neighborhood", "schedule", "--zone", "Mars/Base", "daily 03:00").returncode == 2
    idle.stop()
    assert scheduled(idle)["rule"] == "daily 03:00"
    idle.start()
    assert idle.cli("neighborhood", "schedule", "OFF").returncode == 0
    assert scheduled(idle) is None


def test_missed_snapshot_runs_once_and_old_ones_are_removed(idle: RunningDaemon, stick: Path) -> None:
    idle.start()
    assert idle.cli("neighborhood", "snapshot", "--json").returncode == 0  # by hand: stays
    idle.cli("neighborhood", "schedule", "every", "6", "hours", "--keep", "1")
    first = miss_and_run(idle)
    assert (first["outcome"], first["missed"]) == ("", False)
    made = snapshots(idle)
    assert len(made) == 2  # one for three missed days
    assert made[0]["restorable"]
    assert Path(made[0]["path"]).name == f"{made[0]['name']}.egg"
    assert made[0]["holds"] == ["desk", "stick"]
    miss_and_run(idle)
    kept = snapshots(idle)
    assert [one["scheduled"] for one in kept] == [True, False]
    assert kept[0]["path"] != made[0]["path"]
    assert not Path(made[0]["path"]).exists()
    assert Path(kept[1]["path"]).exists()


def test_scheduled_snapshot_waits_for_one_that_is_under_way(idle: RunningDaemon, stick: Path) -> None:
    idle.start()
    idle.cli("neighborhood", "schedule", "every 6 hours")
    before = scheduled(idle)["last"]
    with SnapshotFolder(idle.home).alone():
        idle.stop()
        with closing(sqlite3.connect(idle.home / "rappd.db")) as store, store:
            store.execute("UPDATE timers SET next = next - 86400")
        idle.start()
        time.sleep(1)
        assert scheduled(idle)["last"] == before
        assert idle.cli("neighborhood", "snapshot").returncode == 9
    idle.wait_for(lambda: scheduled(idle)["last"] != before, what="the scheduled snapshot")
    assert scheduled(idle)["outcome"] == ""
    assert [one["scheduled"] for one in snapshots(idle)] == [True]


def test_failed_schedule_stays_visible_until_one_succeeds(idle: RunningDaemon, stick: Path) -> None:
    idle.start()
    idle.cli("neighborhood", "schedule", "every 6 hours", "--keep", "1")
    stick.rename(stick.with_name("away"))
    failed = miss_and_run(idle)
    assert "partial" in failed["outcome"]
    assert "stick" in failed["outcome"]
    (notice,) = json.loads(idle.cli("notices", "list", "--json").stdout)["notices"]
    assert (notice["kind"], "stick" in notice["what"]) == ("schedule", True)
    assert idle.cli("notices", "dismiss", "--all").returncode == 0
    for words in (["status"], ["neighborhood", "snapshots"], ["neighborhood", "schedule"], ["doctor"]):
        shown = " ".join(idle.cli(*words).stdout.split())
        assert "cheduled snapshots fail since" in shown, words
        assert "stick" in shown, words
    again = miss_and_run(idle)
    assert again["failed_since"] == failed["failed_since"]
    assert len(snapshots(idle)) == 1, "partial ones pile up"
    stick.with_name("away").rename(stick)
    well = miss_and_run(idle)
    assert (well["outcome"], well["failed_since"]) == ("", "")
    assert "fail since" not in idle.cli("neighborhood", "snapshots").stdout
    assert json.loads(idle.cli("notices", "list", "--json").stdout)["notices"] == []


def test_scheduled_snapshot_is_shown_while_it_is_under_way(idle: RunningDaemon, stick: Path) -> None:
    begins_and_lasts(idle, stick)
    seen: list[dict[str, Any]] = []

    def looked() -> bool:
        work = idle.get("/neighborhood/work", control=True).json()["work"]
        if work is not None:
            seen.append(work)
        return bool(ended(idle))

    idle.wait_for(looked, what="the scheduled snapshot")
    assert {work["kind"] for work in seen} == {"snapshot"}
    assert idle.get("/neighborhood/work", control=True).json()["work"] is None


def test_stop_during_a_scheduled_snapshot_is_no_failure_and_it_stays_due(
    idle: RunningDaemon, stick: Path
) -> None:
    begins_and_lasts(idle, stick)
    idle.wait_for(lambda: idle.get("/neighborhood/work", control=True).json()["work"], what="the snapshot")
    idle.stop()
    with closing(sqlite3.connect(idle.home / "rappd.db")) as store:
        assert store.execute("SELECT outcome, last, next < unixepoch() FROM timers").fetchall() == [
            ("", 0, 1)
        ]
        assert store.execute("SELECT count(*) FROM notices").fetchone() == (0,)
