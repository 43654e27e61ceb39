"""The number of pages that a commit touches is estimated well enough: checkpoints go by it."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import uuid
from pathlib import Path

import pytest

from envelopes.envelope import new_id, thread_id
from rappd.store.store import Store
from rappd.store.write_ahead_log import WalCheckpointer
from rappd.store.write_operations import InboxClaim

PEER = "brainstem_0123456789abcdef"


@pytest.mark.parametrize("abreast", [1, 16])
@pytest.mark.parametrize("kind", ["turns", "calls", "old threads"])
async def test_the_estimate_is_about_what_the_log_holds(
    path: Path, say, about, monkeypatch: pytest.MonkeyPatch, kind: str, abreast: int
) -> None:
    estimated: list[int] = []
    monkeypatch.setattr(WalCheckpointer, "wrote", lambda _, pages: estimated.append(pages))
    store = await Store.open(path)
    old = [thread_id("brainstem", "guid", f'"{n}"') for n in range(2_000)]
    await asyncio.gather(*(store.commit(say(thread)) for thread in old))

    async def turn(number: int) -> None:
        thread = thread_id("brainstem", "guid", f'"{new_id()}"')
        store.thread(about(thread))
        for verb in ("HELP", "HELP", "DONE"):
            store.queue(say(thread, "x" * 200, verb=verb))
        await store.commit(say(thread, "x" * 200, verb="DONE"))

    async def call(number: int) -> None:
        thread, id = thread_id("brainstem", PEER, f'"{new_id()}"'), str(uuid.uuid4())
        records = [about(thread), say(thread, "x" * 200, sender=PEER, id=id)]
        await store.claim(InboxClaim(PEER, id, "HELP", "started", "brainstem", thread, b"", 1, records))
        reply = say(thread, "x" * 200, verb="DONE", recipient=PEER, id=id, answers=True)
        await store.commit_reply(reply, PEER, id, "HELP", strict=False)

    async def go_on(number: int) -> None:
        await store.commit(say(old[number * 617 % len(old)], "x" * 200))

    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("PRAGMA wal_checkpoint(RESTART)")
        estimated.clear()
        one = {"turns": turn, "calls": call, "old threads": go_on}[kind]
        for start in range(0, 320, abreast):
            await asyncio.gather(*(one(start + n) for n in range(abreast)))
        _, written, _ = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    assert written / 2 < sum(estimated) < written * 2
    await store.close()
