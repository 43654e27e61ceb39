"""Killed at any moment: rows and records stand or fall together, and what was acknowledged is there."""

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

ROUNDS = 12
CHILD = Path(__file__).with_name("taking_child.py")
PEER = "twin_0123456789abcdef"


def test_kill_9_tears_nothing_apart(path: Path) -> None:
    chance = random.Random(11)
    acknowledged: dict[str, set[str]] = defaultdict(set)
    for turn in range(ROUNDS):
        for line in _run_and_kill(path, chance.uniform(0.0, 0.3), workers=(6, 1)[turn % 2]):
            what, name = line.strip().split(maxsplit=1)
            acknowledged[what].add(name)
        _check(path, acknowledged)  # before any other writer has opened the file
    assert min(len(acknowledged[what]) for what in ("taken", "begun", "done", "out", "gone")) > ROUNDS
    assert verify(path).problems == []


async def test_what_was_under_way_is_found_and_led_to_its_end(path: Path, say) -> None:
    for _ in range(3):
        _run_and_kill(path, 0.2, workers=6)
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


def _run_and_kill(path: Path, after: float, *, workers: int) -> list[str]:
    """Every complete line that the child printed, killed so long after the first."""
    command = [sys.executable, CHILD, path, str(workers)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        lines = [child.stdout.readline()]
        # A pipe holds thousands of these lines, so the child never waits for us to read.
        time.sleep(after)
        child.kill()
        lines += child.stdout.read().splitlines(keepends=True)
    return [line for line in lines if line.endswith("\n")]
