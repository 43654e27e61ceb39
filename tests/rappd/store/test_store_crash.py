"""Killed at any moment: nothing acknowledged is lost, the chain is whole, rows and records stand or fall together."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from collections import defaultdict
from pathlib import Path

from rappd.store.inbox_table import InboxTable
from rappd.store.reader import Reader
from rappd.store.store import Store
from rappd.store.verify import verify
from rappd.store.write_operations import ClaimState, InboxClaim

ROUNDS = 15


def test_kill_9_under_load_loses_nothing_acknowledged(path: Path) -> None:
    chance = random.Random(4)
    acknowledged: dict[str, int] = {}
    for turn in range(ROUNDS):
        for line in _run_and_kill("appending_child.py", path, chance.uniform(0.0, 0.25), (8, 1)[turn % 2]):
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
    thread = _run_and_kill("appending_child.py", path, 0.05, 8)[-1].split()[0]
    store = await Store.open(path)
    before = (await store.find_thread(thread)).count
    await store.commit(say(thread))
    assert (await store.find_thread(thread)).count == before + 1
    await store.close()
    assert verify(path).problems == []


def _run_and_kill(child_file: str, path: Path, after: float, tasks: int) -> list[str]:
    """Every complete line that a child with so many tasks printed, killed so long after the first."""
    command = [sys.executable, Path(__file__).with_name(child_file), path, str(tasks)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        lines = [child.stdout.readline()]
        # A pipe holds thousands of these lines, so the child never waits for us to read.
        time.sleep(after)
        child.kill()
        lines += child.stdout.read().splitlines(keepends=True)
    return [line for line in lines if line.endswith("\n")]


TAKING_ROUNDS = 12
PEER = "twin_0123456789abcdef"


def test_kill_9_tears_nothing_apart(path: Path) -> None:
    chance = random.Random(11)
    acknowledged: dict[str, set[str]] = defaultdict(set)
    for turn in range(TAKING_ROUNDS):
        for line in _run_and_kill("taking_child.py", path, chance.uniform(0.0, 0.3), (6, 1)[turn % 2]):
            what, name = line.strip().split(maxsplit=1)
            acknowledged[what].add(name)
        _check(path, acknowledged)  # before any other writer has opened the file
    assert min(len(acknowledged[what]) for what in ("taken", "begun", "done", "out", "gone")) > TAKING_ROUNDS
    assert verify(path).problems == []


async def test_what_was_under_way_is_found_and_led_to_its_end(path: Path, say) -> None:
    for _ in range(3):
        _run_and_kill("taking_child.py", path, 0.2, 6)
    store = await Store.open(path)
    inbox = InboxTable(store)
    rows = await inbox.unfinished()
    assert {row.state for row in rows} == {"accepted", "started"}
    for row in rows:
        again = InboxClaim(*row[:6], row.body, row.at, [say(row.thread, "must not be written")])
        assert await inbox.claim(again) == ClaimState(row.state, row.thread)
        if row.state == "accepted":
            assert await store.start_claimed(*row[:3], [])
        reply = say(row.thread, "at last", verb="DONE", sender="desk", recipient=PEER, id=row.id)
        await store.commit_reply(reply, *row[:3])
        assert await store.answer_to(PEER, row.id) == reply.body
    assert await inbox.unfinished() == []
    await store.close()
    _check(path, {})
    assert verify(path).problems == []


def _check(path: Path, acknowledged: dict[str, set[str]]) -> None:
    with Reader(path) as record:
        inbox = dict(record.rows("SELECT id, state FROM inbox"))
        asked = [
            id for (id,) in record.rows("SELECT id FROM events WHERE verb = 'HELP' AND sender = ?", (PEER,))
        ]
        begun = [id[6:] for (id,) in record.rows("SELECT id FROM events WHERE id LIKE 'begun %'")]
        replies = [id for (id,) in record.rows("SELECT id FROM events WHERE verb = 'DONE' AND answers = 1")]
        out = {f"{number} {id}" for number, id in record.rows("SELECT number, id FROM outbox")}
        gone = {fingerprint for (fingerprint,) in record.rows("SELECT fingerprint FROM revoked_peers")}
        still = {fingerprint for (fingerprint,) in record.rows("SELECT fingerprint FROM peers")}
        left_accepted = {id for (id,) in record.rows("SELECT id FROM inbox WHERE state = 'accepted'")}
    assert sorted(asked) == sorted([*inbox, *replies])  # each once, none without the other
    assert len(begun) == len(set(begun))
    assert not set(begun) & left_accepted
    assert not gone & still
    assert acknowledged.get("taken", set()) <= set(asked)
    assert acknowledged.get("begun", set()) <= set(begun)
    assert acknowledged.get("done", set()) <= set(replies)
    assert acknowledged.get("out", set()) <= out
    assert acknowledged.get("gone", set()) <= gone
