"""Active turns: their events so far, for clients that listen now or reconnect later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Coroutine
from typing import Any

import orjson

KEEP_SECONDS = 300.0
KEEP_TURNS = 200
KEEP_EVENTS = 20_000
KEEP_OCTETS = 64 << 20
"""Of all finished turns: each may have had results of 60 MB. Who follows one still gets it whole."""
_DELTA = b'{"type":"delta"'


class TurnStream:
    """The numbered events of one turn. Event ids start at 1."""

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self.finished_at: float | None = None
        self.task: asyncio.Task[Any] | None = None
        self.octets = 0
        self.settled = True
        """False where its end is not in the record yet: a repeat asks anew then, and gets what stands there."""
        self._changed: asyncio.Event | None = None  # made for the first who listens

    def append(self, event: dict[str, Any]) -> None:
        """Adds one event and wakes the listeners. A turn that never stops talking is cut short."""
        if len(self.events) < KEEP_EVENTS or event.get("type") in ("done", "error"):
            self.events.append(orjson.dumps(event, default=str))
            self.octets += len(self.events[-1])
            self._tell()

    def finish(self) -> None:
        """No event comes after this."""
        self.finished_at = time.monotonic()
        self._tell()

    async def follow(self, after: int = 0) -> AsyncIterator[tuple[int, bytes]]:
        """Events with an id above ``after``, those to come included, until the turn is over."""
        position = min(max(0, after), len(self.events))
        changed = self._changed = self._changed or asyncio.Event()
        while True:
            while position < len(self.events):
                position += 1
                yield position, self.events[position - 1]
            if self.finished_at is not None:
                return
            changed.clear()
            if position == len(self.events) and self.finished_at is None:
                await changed.wait()

    def said(self) -> str:
        """The text of the answer so far."""
        events = (orjson.loads(event) for event in self.events if event.startswith(_DELTA))
        return "".join(str(event.get("text", "")) for event in events)

    def _tell(self) -> None:
        if self._changed is not None:
            self._changed.set()


class TurnStreams:
    """Turns by (caller, turn id). Finished ones stay for a while, so that a reload can catch up."""

    def __init__(self) -> None:
        self._turns: dict[tuple[str, str], TurnStream] = {}

    def get(self, caller: str, turn_id: str) -> TurnStream | None:
        """The turn of that id, running or lately finished."""
        return self._turns.get((caller, turn_id))

    def start(
        self, caller: str, turn_id: str, live: TurnStream, work: Coroutine[Any, Any, None]
    ) -> TurnStream:
        """Runs ``work`` on its own task, so that it outlives the connection that asked for it."""
        self._forget_old()
        self._turns[(caller, turn_id)] = live
        task = asyncio.create_task(work, name=f"turn {turn_id}")
        live.task = task
        task.add_done_callback(lambda _: self._finish((caller, turn_id), live))
        return live

    def cancel(self, turn_id: str) -> bool:
        """Stops the turn of that id; False when there is none running."""
        for (_, known), live in self._turns.items():
            if known == turn_id and live.task is not None and not live.task.done():
                live.task.cancel()
                return True
        return False

    def running(self) -> int:
        """Returns the number of active turns."""
        return sum(live.finished_at is None for live in self._turns.values())

    async def close(self) -> None:
        """Stops every turn and waits until they are gone."""
        tasks = [live.task for live in self._turns.values() if live.task and not live.task.done()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _finish(self, key: tuple[str, str], live: TurnStream) -> None:
        live.finish()
        if not live.settled and self._turns.get(key) is live:
            del self._turns[key]
        self._forget_old()

    def _forget_old(self) -> None:
        now = time.monotonic()
        finished = [(key, live) for key, live in self._turns.items() if live.finished_at is not None]
        excess = len(self._turns) - KEEP_TURNS
        octets = sum(live.octets for _, live in finished)
        for index, (key, live) in enumerate(finished):
            assert live.finished_at is not None
            if index < excess or octets > KEEP_OCTETS or now - live.finished_at > KEEP_SECONDS:
                octets -= live.octets
                del self._turns[key]
