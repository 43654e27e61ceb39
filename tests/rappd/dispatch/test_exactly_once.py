"""A HELP of another machine is begun once, whatever thread its repeats name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from envelopes.envelope import HELP, THREAD, Envelope, new_id
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import RequestContext
from rappd.store.store import Store
from rappd.store.verify import verify

DESK, PEER = "brainstem_0123456789abcdef", "brainstem_fedcba9876543210"
ONE, OTHER = new_id(), new_id()


def asked(id: str, thread: str) -> Envelope:
    extensions: dict[str, Any] = {THREAD: thread} if thread else {}
    return Envelope(id, PEER, DESK, HELP, {"agent": "Mail"}, extensions)


@pytest.mark.parametrize("way", ["line", "batch"])
@pytest.mark.parametrize("threads", [(ONE, ONE), (ONE, ""), ("", ONE), (ONE, OTHER)], ids=str)
async def test_repeat_of_what_was_cut_off_begins_nothing(
    tmp_path: Path, way: str, threads: tuple[str, str]
) -> None:
    id, caller, begun = new_id(), Caller("federation", peer="f" * 64), asyncio.Event()
    performed = 0

    async def perform(context: RequestContext) -> dict[str, Any]:
        nonlocal performed
        performed += 1
        begun.set()
        await asyncio.sleep(5)
        return {}

    def opened(store: Store) -> Dispatcher:
        dispatcher = Dispatcher(store)
        dispatcher.route(DESK, "brainstem", perform)
        return dispatcher

    store = await Store.open(tmp_path / "rappd.db")
    first = opened(store)
    if way == "batch":
        assert await first.accept(asked(id, threads[0])) is None
    first.submit_once(asked(id, threads[0]), caller, begun=way == "batch")
    await begun.wait()
    await first.stop()
    await store.close()

    store = await Store.open(tmp_path / "rappd.db")
    second = opened(store)
    for thread in (threads[1], threads[0], threads[1]):
        reply = await second.submit_once(asked(id, thread), caller).reply()
        assert reply.data["reason"] == "interrupted"
    known = await second.accept(asked(id, threads[1]))
    assert known is not None and known.data["reason"] == "interrupted"
    assert performed == 1
    await second.close()
    await store.close()
    assert verify(tmp_path / "rappd.db").problems == []
