"""Processes killed at any moment: what was answered stays answered, and the next start is clean."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import time
from collections.abc import Callable
from functools import partial

import pytest
from fixtures.load import TALKERS, Load
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import lives

from agents.runtimes.python.pools.started_processes import children, descendants

ROUNDS = 8


def _gone(pids: list[int]) -> bool:
    return not any(map(lives, pids))


@pytest.mark.timeout(900)
@pytest.mark.own_process(zygote=True)
def test_kill_9_under_load_loses_no_answer(make_daemon: Callable[..., RunningDaemon]) -> None:
    chance = random.Random(7)
    daemon = make_daemon(LLM_FAKE="1")
    load = Load(daemon)
    for round_ in range(ROUNDS):
        daemon.start()
        before = len(load.answered)
        if round_:
            load.check_record()
        with load.talking():
            daemon.wait_for(partial(load.has, before + 1), what="a first answer")
            time.sleep(chance.uniform(0, 0.4))  # the moment is what the test is about
            assert daemon.process is not None
            below = descendants(daemon.process.pid)
            daemon.kill()
        daemon.wait_for(partial(_gone, below), what="template and workers to end with the daemon")
    daemon.start()
    load.check_record()
    for turn in load.unanswered:  # asked again, a turn that broke off is answered, and then stays so
        first = load.ask(turn)
        assert first.status == 200
        assert load.ask(turn).content == first.content  # type: ignore[attr-defined]
    assert daemon.cli("threads", "verify").returncode == 0
    assert len(load.answered) > ROUNDS
    assert load.refused == []
    daemon.stop()
    assert not (daemon.home / "rappd.sock").exists()
    assert (daemon.home / "rappd.pid").read_text() == ""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("victim", ["template", "workers"])
@pytest.mark.own_process(zygote=True)
def test_killed_zygote_or_worker_costs_only_its_calls(
    make_daemon: Callable[..., RunningDaemon], victim: str
) -> None:
    chance = random.Random(11)
    daemon = make_daemon(LLM_FAKE="1").start()
    load = Load(daemon)
    with load.talking():
        for _ in range(4):
            before = len(load.answered)
            daemon.wait_for(partial(load.has, before + TALKERS), what="answers before the kill")
            time.sleep(chance.uniform(0, 0.2))
            assert daemon.process is not None
            template = children(daemon.process.pid)[0]
            for pid in [template] if victim == "template" else descendants(template):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            after = len(load.answered)
            daemon.wait_for(partial(load.has, after + 2 * TALKERS), what="answers after the kill")
    assert load.unanswered == []
    assert load.refused == []
    load.check_record()
    assert daemon.get("/readyz").status == 200


@pytest.mark.own_process(zygote=True)
def test_start_is_clean_after_kill_left_lock_and_socket(
    make_daemon: Callable[..., RunningDaemon],
) -> None:
    daemon = make_daemon(LLM_FAKE="1").start()
    daemon.kill()
    assert (daemon.home / "rappd.sock").exists()
    assert (daemon.home / "rappd.pid").read_text().split()[1] == str(daemon.port)
    stopped = daemon.cli("status")
    assert stopped.returncode == 3
    assert stopped.stderr.startswith("✗ rappd isn't running here\n  → ")
    assert stopped.stderr.rstrip().endswith("rappd start")
    assert daemon.cli("doctor").returncode == 0, "what a crash leaves behind is no problem"
    started = daemon.cli("start", "--detach")
    assert started.returncode == 0, started.stderr
    assert daemon.cli("stop").returncode == 0
