"""HELPs of other machines that are under way, and what the latest of them said while they were."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from envelopes.envelope import PEER_THREAD, THREAD, Envelope
from rappd.dispatch.context import Caller, Emit
from rappd.dispatch.turn_stream import TurnStream

KEPT = 100
KEPT_SECONDS = 300.0
KEPT_BYTES = 1 << 20
"""Of one that is over; longer ones are not kept, only their end is, in the record."""

_Key = tuple[str, str]


@dataclass(slots=True)
class ActiveRequest:
    """One HELP: its task, what it said so far, who asked whom. ``pushed``: its end goes to the asker's listener."""

    task: asyncio.Task[Envelope]
    live: TurnStream
    caller: Caller
    recipient: str
    claimed: dict[str, Any] = field(default_factory=dict)
    pushed: bool = False

    async def over_within(self, seconds: float) -> None:
        """Waits for the task's end, so long at most.

        (As ``asyncio.wait`` does, at a third of its price.)
        """
        if self.task.done():
            return
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def wake(_: object = None) -> None:
            if not over.done():
                over.set_result(None)

        self.task.add_done_callback(wake)
        late = loop.call_later(seconds, wake)
        try:
            await over
        finally:
            late.cancel()
            self.task.remove_done_callback(wake)


class ActiveRequests:
    """By who asked and the envelope's id; a repeat finds the one that is under way."""

    def __init__(self) -> None:
        self._running: dict[_Key, ActiveRequest] = {}
        self._over: OrderedDict[_Key, tuple[float, ActiveRequest]] = OrderedDict()

    def start(
        self,
        inner: Envelope,
        caller: Caller,
        perform: Callable[[Emit], Coroutine[Any, Any, Envelope]],
        ended: Callable[[], None],
    ) -> ActiveRequest:
        """Runs ``perform(emit)`` on a task of its own, and ``ended()`` after it."""
        key = (inner.sender, inner.id)
        live = TurnStream()
        claimed = {THREAD: inner.extensions[THREAD]} if THREAD in inner.extensions else {}
        if PEER_THREAD in inner.extensions:
            claimed = {THREAD: inner.extensions[PEER_THREAD]}

        task = asyncio.get_running_loop().create_task(perform(live.append))
        work = self._running[key] = ActiveRequest(task, live, caller, inner.recipient, claimed)

        def done(task: asyncio.Task[Envelope]) -> None:
            ended()
            if self._running.get(key) is work:
                del self._running[key]
                self._keep(key, work)
            live.finish()
            if not task.cancelled():
                task.exception()  # raised for the waiting callers

        task.add_done_callback(done)
        return work

    def find(self, sender: str, id: str) -> ActiveRequest | None:
        """The one under way."""
        return self._running.get((sender, id))

    def lately(self, sender: str, id: str) -> ActiveRequest | None:
        """The one under way, or lately over and kept with all that it said."""
        found = self._running.get((sender, id))
        if found is None and (kept := self._over.get((sender, id))) is not None:
            return kept[1]
        return found

    def tasks(self) -> list[asyncio.Task[Envelope]]:
        """Of all that is under way."""
        return [work.task for work in self._running.values()]

    def _keep(self, key: _Key, work: ActiveRequest) -> None:
        now = time.monotonic()
        while self._over and (
            len(self._over) >= KEPT or now - next(iter(self._over.values()))[0] > KEPT_SECONDS
        ):
            self._over.popitem(last=False)
        if work.live.events and sum(map(len, work.live.events)) <= KEPT_BYTES:
            self._over[key] = (now, work)
            self._over.move_to_end(key)
