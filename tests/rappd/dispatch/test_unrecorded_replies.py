"""Work whose answer the event log did not take: done once, told so, and its answer recorded later."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from envelopes.envelope import DONE, HELP, Envelope, new_id
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.rights import Caller
from rappd.dispatch.turns import RequestContext
from rappd.dispatch.unrecorded_replies import UnrecordedReplyError
from rappd.errors import StoreError
from rappd.store import connections
from rappd.store.store import Store
from rappd.store.verify import verify

DESK = "brainstem_desk"


class Desk:
    """A dispatcher whose one handler locks the event log while it works, and counts."""

    def __init__(self, path: Path, store: Store) -> None:
        self.path, self.store = path, store
        self.dispatcher = Dispatcher(store)
        self.dispatcher.route(DESK, "brainstem", self.perform)
        self.performed = 0
        self.locks = True
        self._other: sqlite3.Connection | None = None

    async def perform(self, context: RequestContext) -> dict[str, Any]:
        call = self.dispatcher.record_call(context, sender=DESK, recipient="Mail", data={"agent": "Mail"})
        if self.locks:
            await self.store.flush()
            self.lock()
        self.dispatcher.record_result(context, call, DONE, {"agent": "Mail"})
        self.performed += 1
        return {"response": f"sent {self.performed}"}

    def lock(self) -> None:
        self._other = sqlite3.connect(self.path, isolation_level=None)
        self._other.execute("BEGIN IMMEDIATE")

    def unlock(self) -> None:
        if self._other is not None:
            self._other.close()
            self._other = None

    def ask(self, id: str) -> Any:
        asked = Envelope(id, "guid", DESK, HELP, {"user_input": "send the mail"})
        return self.dispatcher.submit(asked, Caller("loopback"), session="s", named=True).reply()

    async def events(self) -> list[str]:
        (thread,) = await self.store.threads()
        return [one.verb for one in await self.store.thread_events(thread.id)]


@pytest.fixture
async def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Desk]:
    monkeypatch.setattr(connections, "BUSY_MS", 50)
    made = Desk(tmp_path / "rappd.db", await Store.open(tmp_path / "rappd.db"))
    yield made
    made.unlock()
    await made.dispatcher.close()
    await made.store.close()
    assert verify(made.path).problems == []


async def test_answer_comes_by_itself_once_the_log_can_be_written(desk: Desk) -> None:
    with pytest.raises(UnrecordedReplyError, match=r"It was done, .* locked") as caught:
        await desk.ask(new_id())
    assert caught.value.do == "Do not ask again. Close it: the answer then comes by itself."
    desk.unlock()
    async with asyncio.timeout(100):
        while (await desk.events())[-1] != DONE or len(await desk.events()) < 4:
            await asyncio.sleep(0.02)
    assert await desk.events() == [HELP, HELP, DONE, DONE]


async def test_repeat_gets_the_result_and_nothing_is_done_twice(desk: Desk) -> None:
    id = new_id()
    for _ in range(2):  # and while the log is still locked
        with pytest.raises(UnrecordedReplyError):
            await desk.ask(id)
    desk.unlock()
    assert (await desk.ask(id)).data == {"response": "sent 1"}
    assert (await desk.ask(id)).data == {"response": "sent 1"}
    assert desk.performed == 1
    assert await desk.events() == [HELP, HELP, DONE, DONE]


async def test_nothing_is_begun_while_the_log_takes_nothing(desk: Desk) -> None:
    with pytest.raises(UnrecordedReplyError):
        await desk.ask(new_id())
    other = new_id()
    with pytest.raises(StoreError) as caught:
        await desk.ask(other)
    assert not isinstance(caught.value, UnrecordedReplyError)
    assert caught.value.do == "Close it, then try again."
    assert desk.performed == 1
    desk.unlock()
    desk.locks = False
    assert (await desk.ask(other)).data == {"response": "sent 2"}


async def test_last_try_is_at_the_end(desk: Desk) -> None:
    id = new_id()
    with pytest.raises(UnrecordedReplyError):
        await desk.ask(id)
    desk.unlock()
    await desk.dispatcher.close()
    assert (await desk.dispatcher.recorded("guid", id)) is not None


async def test_peer_waits_for_an_answer_that_cannot_be_recorded_yet(desk: Desk) -> None:
    asked = Envelope(new_id(), "brainstem_pi", DESK, HELP, {"user_input": "send the mail"})
    caller = Caller("federation", peer="pi", caps=("HELP.*",))
    turn = desk.dispatcher.submit_once(asked, caller)
    while not desk.performed:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.2)  # it has tried, and failed
    assert not turn.is_over
    desk.unlock()
    async with asyncio.timeout(100):
        assert (await turn.reply()).data == {"response": "sent 1"}
    again = await desk.dispatcher.submit_once(asked, caller).reply()
    assert (again.data, desk.performed) == ({"response": "sent 1"}, 1)
