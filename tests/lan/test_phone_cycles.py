"""Phones that come and go leave nothing behind. ``make storm`` does more of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from fixtures.running_daemon import REPO, RunningDaemon

from lan.network import Lan

DAEMON = REPO / "tests" / "lan" / "cycling_daemon.py"
MOST_KIB, MOST_COUNT = 4096, 5
"""Growth after the first round: memory that the allocator keeps, files that are open for a moment."""


def rounds_of_phones(lan: Lan, folder: Path, rounds: int, cycles: int) -> list[dict[str, int]]:
    """The numbers that a daemon and its WebRTC process hold after each round."""
    daemon = RunningDaemon(folder / "desk", LLM_FAKE="1", PYTHONPATH=f"{REPO}:{REPO / 'tests'}")
    scrubbed = ["env", "-i", *(f"{key}={value}" for key, value in daemon.environment.items())]
    program = [sys.executable, str(DAEMON), str(daemon.home), str(rounds), str(cycles)]
    process = lan.machine("desk").start([*scrubbed, *program], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    found = [json.loads(process.stdout.readline()) for _ in range(rounds)]
    assert process.wait(100) == 0
    return found


def growth(found: list[dict[str, int]]) -> dict[str, int]:
    """The numbers that grew beyond their limit since the first round, in which everything was imported."""
    first, last = found[0], found[-1]
    grown = {name: count - first[name] for name, count in last.items()}
    return {name: by for name, by in grown.items() if by > (MOST_KIB if name.endswith("kib") else MOST_COUNT)}


def test_phones_that_come_and_go_leave_nothing(lan: Lan, tmp_path: Path) -> None:
    found = rounds_of_phones(lan, tmp_path, 3, 20)
    assert growth(found) == {}, found
