"""``notify.command`` is refused, warned of, or reported when its program cannot be run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fixtures.running_daemon import RunningDaemon


def make_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\nexit 0\n")
    path.chmod(0o755)
    return path


def doctor_row(daemon: RunningDaemon) -> dict[str, Any] | None:
    rows = json.loads(daemon.cli("doctor", "--json").stdout)["doctor"]
    return next((row for row in rows if row["about"] == "Notices"), None)


@pytest.mark.parametrize("place", ["tmp", "workspace"])
def test_program_that_agents_could_replace_is_refused(
    idle: RunningDaemon, tmp_path: Path, place: str
) -> None:
    program = make_program((tmp_path if place == "tmp" else idle.home / "workspace") / "tell")
    done = idle.cli("config", "set", "notify.command", f"{program} 'for me'")
    assert done.returncode == 2, done.stdout
    assert "tell in " in done.stderr
    assert "is not used: agents could replace it" in done.stderr
    assert "where only root can write, such as /usr/local/bin" in done.stderr
    assert idle.cli("config", "show", "notify.command").stdout.split("\n")[0].split()[-1] == "default"


def test_program_that_is_not_there_is_set_with_a_warning(idle: RunningDaemon) -> None:
    done = idle.cli("config", "set", "notify.command", "no-such-program rappd")
    assert done.returncode == 0
    assert "there is no program no-such-program" in done.stderr
    assert idle.cli("config", "set", "notify.command", "sh -c true").stderr == ""


def test_doctor_says_that_the_command_cannot_be_run(idle: RunningDaemon, tmp_path: Path) -> None:
    assert doctor_row(idle) is None
    for command, verdict, what in (
        (str(make_program(tmp_path / "tell")), "bad", "agents could replace it"),
        ("no-such-program", "note", "there is no program no-such-program"),
        ("sh 'open", "bad", "cannot be read"),
    ):
        idle.environment["RAPPD_NOTIFY_COMMAND"] = command
        row = doctor_row(idle)
        assert row is not None
        assert row["verdict"] == verdict, row
        assert what in row["what"]
        assert row["do"]
    idle.environment["RAPPD_NOTIFY_COMMAND"] = "sh -c true"
    assert doctor_row(idle) == {
        "about": "Notices", "verdict": "good", "what": "notify.command runs sh", "do": "",
    }  # fmt: skip
