"""A daemon that is killed again and again while visitors talk: after each kill every answer is there, and verifies."""

from __future__ import annotations

import random
import time
from functools import partial
from pathlib import Path

import pytest
from fixtures.load import Load
from fixtures.running_daemon import RunningDaemon
from fixtures.terminal import lives

from agents.runtimes.python.pools.started_processes import descendants
from tests.storm.storm import SECONDS, rounds


@pytest.mark.timeout(600 + int(SECONDS))
@pytest.mark.parametrize("strict", ["0", "1"], ids=["default", "strict"])
@pytest.mark.own_process(zygote=True)
def test_kill_9_again_and_again_loses_no_answer(tmp_path: Path, strict: str) -> None:
    chance = random.Random(13)
    daemon = RunningDaemon(tmp_path / "home", LLM_FAKE="1", RAPPD_STORE_STRICT=strict)
    load = Load(daemon)
    for _ in rounds(0.15):
        daemon.start()
        load.check_record()
        assert daemon.process is not None
        before = len(load.answered)
        with load.talking():
            daemon.wait_for(partial(load.has, before + 1), what="a first answer")
            time.sleep(chance.uniform(0, 1.0))  # the moment is what the test is about
            below = descendants(daemon.process.pid)
            daemon.kill()
        daemon.wait_for(partial(_ended, below), what="template and workers to end with the daemon")
        verified = daemon.cli("threads", "verify")
        assert verified.returncode == 0, verified.stdout + verified.stderr
    daemon.start()
    load.check_record()
    assert load.refused == []
    daemon.stop()


def _ended(pids: list[int]) -> bool:
    return not any(map(lives, pids))
