"""Timers of ``organism.yaml``: rows of that origin, which follow the file and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon

TWO = """\
timers:
  - name: morning
    when: every weekday at 9
    ask: what is new?
  - {name: water, when: every 2 hours, remind: drink water}
"""


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Any:
    running = RunningDaemon(tmp_path_factory.mktemp("timers") / "home", LLM_FAKE="1").start()
    yield running
    running.stop()


def rows(daemon: RunningDaemon) -> dict[str, dict[str, Any]]:
    found = daemon.get("/timers", control=True).json()["timers"]
    return {one["what"]: one for one in found}


def write(daemon: RunningDaemon, text: str, expected: set[str]) -> None:
    (daemon.home / "organism.yaml").write_text(text)
    daemon.post("/organism/reload", {}, control=True)
    daemon.wait_for(lambda: set(rows(daemon)) == expected, what="the rows of the file")


def test_rows_follow_the_file(daemon: RunningDaemon) -> None:
    write(daemon, TWO, {"what is new?", "drink water"})
    morning = rows(daemon)["what is new?"]
    assert (morning["kind"], morning["by"], morning["change"]) == ("ask", "organism.yaml", "organism.yaml")
    assert morning["when"].startswith("every weekday at 09:00")
    write(daemon, TWO.replace("drink water", "stand up"), {"what is new?", "stand up"})
    assert rows(daemon)["what is new?"] == morning
    write(daemon, TWO.replace("weekday at 9", "weekday at 10"), {"what is new?", "drink water"})
    assert "10:00" in rows(daemon)["what is new?"]["when"]
    write(daemon, "", set())


def test_it_is_paused_and_run_here_and_changed_in_the_file_alone(daemon: RunningDaemon) -> None:
    write(daemon, TWO, {"what is new?", "drink water"})
    id = rows(daemon)["drink water"]["id"]
    assert daemon.cli("timers", "pause", id).returncode == 0
    assert "water" in daemon.cli("organism", "show").stdout
    write(daemon, "# other words\n" + TWO, {"what is new?", "drink water"})
    assert rows(daemon)["drink water"]["paused"], "what the file does not speak of stays"
    for change in (("cancel", id), ("move", id, "at 10")):
        refused = daemon.cli("timers", *change)
        assert refused.returncode != 0 and "rappd organism remove timer water" in refused.stderr
    assert daemon.cli("timers", "run", id).returncode == 0
    told = [one["what"] for one in daemon.get("/notices", control=True).json()["notices"]]
    daemon.wait_for(
        lambda: "drink water" in str(daemon.get("/notices", control=True).json()),
        what=f"the reminder in {told}",
    )
    assert daemon.cli("organism", "remove", "timer", "water").returncode == 0
    daemon.wait_for(lambda: set(rows(daemon)) == {"what is new?"}, what="the row's end")


def test_they_are_there_after_a_restart_with_their_pause(make_daemon: Callable[..., RunningDaemon]) -> None:
    daemon = make_daemon()
    daemon.home.mkdir(parents=True, exist_ok=True)
    (daemon.home / "organism.yaml").write_text(TWO)
    daemon.start()
    daemon.wait_for(lambda: len(rows(daemon)) == 2, what="the rows at the start")
    assert daemon.cli("timers", "pause", rows(daemon)["drink water"]["id"]).returncode == 0
    daemon.stop()
    (daemon.home / "organism.yaml").write_text(TWO.replace("every weekday at 9", "every day at 8"))
    daemon.start()
    daemon.wait_for(lambda: "08:00" in rows(daemon)["what is new?"]["when"], what="what changed meanwhile")
    assert rows(daemon)["drink water"]["paused"]
