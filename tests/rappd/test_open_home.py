"""Several homes open in one process, each with its own settings, log, workers and end."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from fixtures.running_daemon import RunningDaemon, agent_source

from rappd.errors import ConflictError

ASKS = "import os; return f\"{os.environ.get('RAPPD_NAME')} {os.getppid() > 0}\""


def test_two_homes_in_one_process_have_their_own_settings_logs_and_workers(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    first = make_daemon("first", LLM_FAKE="1", RAPPD_NAME="ada").start()
    second = make_daemon("second", RAPPD_NAME="bob", RAPPD_AGENTS_WORKERS="1").start()
    for daemon, name in ((first, "ada"), (second, "bob")):
        assert daemon.get("/operator/status", control=True).json()["name"] == name
        daemon.drop(f"{name}_agent.py", agent_source(name.title(), ASKS))
        daemon.wait_for(lambda: name.title() in daemon.agent_names())  # noqa: B023 - called at once
        assert daemon.chat(f"run {name}")["response"].count("ada") in (0, 1)
    assert (first.home / "rappd.pid").read_text().split()[0] == str(os.getpid())
    assert "Ada is ready" in first.log and "Ada is ready" not in second.log
    assert "Bob is ready" in second.log and "Bob is ready" not in first.log
    first.stop()
    assert not (first.home / "rappd.sock").exists()
    assert second.get("/readyz").status == 200
    assert first.start().get("/readyz").status == 200


def test_home_that_is_open_is_not_opened_twice(make_daemon: Callable[..., RunningDaemon]) -> None:
    make_daemon("home").start()
    with pytest.raises(ConflictError, match="already runs on this home"):
        make_daemon("home").start()
