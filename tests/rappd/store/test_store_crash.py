"""Killed at any moment: nothing that was acknowledged is lost, and the chain is whole."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from pathlib import Path

from rappd.store.reader import Reader
from rappd.store.store import Store
from rappd.store.verify import verify

ROUNDS = 15
CHILD = Path(__file__).with_name("appending_child.py")


def test_kill_9_under_load_loses_nothing_acknowledged(path: Path) -> None:
    chance = random.Random(4)
    acknowledged: dict[str, int] = {}
    for turn in range(ROUNDS):
        for line in _run_and_kill(path, chance.uniform(0.0, 0.25), writers=(8, 1)[turn % 2]):
            thread, n = line.split()
            acknowledged[thread] = max(int(n), acknowledged.get(thread, 0))
        with Reader(path) as reader:  # before any other writer has opened the file
            counts = {row.id: row.count for row in reader.threads(10_000)}
        lost = {thread: n for thread, n in acknowledged.items() if counts.get(thread, 0) < n}
        assert not lost
    assert len(acknowledged) > ROUNDS
    report = verify(path)
    assert report.problems == []
    assert report.events >= sum(acknowledged.values())
    with Reader(path) as reader:
        for thread, n in list(acknowledged.items())[:20]:
            assert reader.thread_events(thread)[n - 1].body.startswith(b"%d " % n)


async def test_a_store_goes_on_after_its_process_was_killed(path: Path, say) -> None:
    thread = _run_and_kill(path, 0.05, writers=8)[-1].split()[0]
    store = await Store.open(path)
    before = (await store.find_thread(thread)).count
    await store.commit(say(thread))
    assert (await store.find_thread(thread)).count == before + 1
    await store.close()
    assert verify(path).problems == []


def _run_and_kill(path: Path, after: float, *, writers: int) -> list[str]:
    """Every complete line that the child printed, killed so long after the first."""
    command = [sys.executable, CHILD, path, str(writers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        lines = [child.stdout.readline()]
        # A pipe holds thousands of these lines, so the child never waits for us to read.
        time.sleep(after)
        child.kill()
        lines += child.stdout.read().splitlines(keepends=True)
    return [line for line in lines if line.endswith("\n")]
