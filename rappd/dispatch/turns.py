"""Turns: HELPs under way and lately answered, by their caller and id, with their events and replies; and who performs them."""

from __future__ import annotations

import asyncio
import logging
import time
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from operator import itemgetter
from typing import Any

import msgspec
from msgspec.structs import replace

from agents.providers.provider import Completion, Usage
from envelopes.envelope import Envelope
from envelopes.errors import ReportableError
from envelopes.events import Delta, Emit, Event, encode, replaces
from envelopes.program_input import ProgramInput
from rappd.dispatch.rights import Caller
from rappd.errors import StoreError
from rappd.store.records import ListenerState, Record, ThreadInfo

log = logging.getLogger(__name__)

KEEP_SECONDS = 300.0
KEEP_TURNS = 200
KEEP_EVENTS = 20_000
KEEP_OCTETS = 64 << 20
"""Of all turns that are over: each may have had results of 60 MB. Who follows one still gets it whole."""
KEEP_OCTETS_OF_GUESTS_TURN = 1 << 20
"""Of one turn of another machine or a phone."""
_DELTA = b'{"type":"delta"'
_delta = msgspec.json.Decoder(Delta).decode

_Key = tuple[str, str]
Work = Callable[["Turn"], Coroutine[Any, Any, Envelope]]


class RecordedCall(msgspec.Struct):
    """A call within a turn, as the event log has it. ``answer`` is the DONE's data; None where there is no DONE."""

    id: str
    parent: str
    recipient: str
    data: dict[str, Any]
    answer: dict[str, Any] | None = None

    @property
    def agent(self) -> str:
        """The name of who was called."""
        return str(self.data.get("agent", ""))


class RequestContext(msgspec.Struct):
    """A record on its way through the dispatcher: its caller, its thread, and who listens for progress.

    ``usage`` is what its agents' own model calls came to, once there was one. ``model_call`` is awaited before
    each model call, and may refuse it. ``records`` is what was written down
    of it so far: it is written down anew where the event log lost it. ``path``: the names from the root of its thread
    to it, () for a root; a workflow's step has its names behind those of its thread. ``program`` is the further input of
    a foreign program.
    """

    envelope: Envelope
    caller: Caller
    workspace: str
    emit: Emit | None = None
    usage: Usage | None = None
    records: list[Record | ThreadInfo] = []
    path: tuple[str, ...] = ()
    emitted: list[str] = []
    """Listeners that payloads of handlers called within the turn, all of its threads together."""
    program: ProgramInput | None = None
    model_call: Callable[[], Awaitable[None]] | None = None
    depth: int = 0
    """Listeners that a model drives, around it."""
    rounds: list[str] = []
    """Names of such listeners, once for each of their rounds within the turn."""
    user: str = ""
    """The user who began the turn, where ``envelope`` is a call within it."""
    timer: str = ""
    """The id of the turn, where a timer began it: a repeat after a kill has the same."""
    delays: list[str] = []
    """Places at which delays were begun within the turn."""
    answered: list[RecordedCall] = []
    """Calls of the same turn before it was cut off, whose answers count."""
    forked: str = ""
    """The listener for whose call its thread was forked, whatever the thread is called."""
    once: bool = False
    """True where no later request continues its root thread."""
    states: object = None
    """States of listeners that a call around it has in hand (``rappd.tenants.listener_states``)."""
    stateful: tuple[Any, ...] = ()
    """Keys of the stateful calls that it is inside of, the outermost first."""
    kept: list[Any] = []
    """Keys of all states of the turn."""
    state: ListenerState | None = None
    """Written with its reply."""

    @property
    def person(self) -> str:
        """The user on whose behalf all of it is done, whose memory counts."""
        return self.user or self.envelope.sender

    def answer_before(self, agent: str, arguments: dict[str, Any]) -> dict[str, Any] | None:
        """The answer that this very call had before the turn was cut off; it is given once."""
        for one in self.answered:
            same = one.agent == agent and one.data.get("args") == arguments
            if same and one.parent == self.envelope.id and one.answer is not None:
                self.answered.remove(one)
                return one.answer
        return None

    def used(self, completion: Completion) -> None:
        """Counts a model call that an agent made."""
        self.usage = self.usage or Usage()
        self.usage.add(completion)


Handler = Callable[[RequestContext], Awaitable[dict[str, Any]]]
"""Performs a HELP and returns the DONE's data; raises ``ReportableError`` to refuse."""

Repeatable = Callable[[Envelope], bool]
"""Returns True when an interrupted HELP may be performed a second time."""


class Turn:
    """A HELP on its way to its reply, with its numbered events so far. Their numbers start at 1.

    It runs by itself once it is begun. One that nobody begins runs on the task of the first who waits for its reply.
    """

    def __init__(
        self,
        envelope: Envelope,
        caller: Caller,
        work: Work,
        *,
        session: Any = None,
        tells: bool = False,
        stop: Callable[[], object] | None = None,
    ) -> None:
        """``tells``: its events are kept, and may be followed. ``session`` is its caller's, if there is one.

        ``stop`` is for work that has to be asked to stop, and may refuse.
        """
        self.envelope, self.caller, self.session = envelope, caller, session
        self.tells = tells
        self.number = 0
        """The number of its latest event."""
        self.octets = 0
        self.over_at: float | None = None
        self.why_stopped = "stopped"
        self.recorded_at = 0
        """The moment of its answer in the record, in µs since 1970; 0 where it has none of its own, as a repeat has."""
        self._work, self._stop = work, stop
        self._events: list[tuple[int, bytes]] = []
        self._latest: Event | None = None
        self._task: asyncio.Future[Envelope] | None = None
        """The turn's task; the outcome alone where it runs on another's task."""
        self._runs_on: asyncio.Task[Any] | None = None
        self._is_abandoned = False
        self._at_end: list[Callable[[], object]] = []
        self._changed: asyncio.Event | None = None  # made for the first who listens

    def begin(self) -> Turn:
        """Runs it on a task of its own, so that it outlives its caller's connection."""
        assert self._task is None, "a turn begins once"
        task = asyncio.get_running_loop().create_task(self._work(self), name=f"turn {self.envelope.id}")
        task.add_done_callback(self._ended)
        self._task = task
        return self

    async def reply(self) -> Envelope:
        """The DONE or ERROR, once it is durable. Who stops waiting for a turn that runs by itself does not stop it.

        Raises ``ReportableError`` where there is none: ``RequestCancelledError`` for a turn that was stopped.
        """
        if self._task is None:
            return await self._run_here()
        if not self._task.done():
            await self.over_within(None)
        return self.result()

    async def _run_here(self) -> Envelope:
        task = self._runs_on = asyncio.current_task()
        outcome: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self._task = outcome
        try:
            outcome.set_result(await self._work(self))
        except asyncio.CancelledError:
            outcome.cancel()
            # Where the turn alone is stopped, who waits for it is not: unless both are.
            if task is None or not self._is_abandoned or task.uncancel():
                raise
            raise RequestCancelledError from None
        except BaseException as problem:
            outcome.set_exception(problem)
            raise
        finally:
            self._runs_on = None
            self._ended(outcome)
        return outcome.result()

    async def end(self) -> Envelope:
        """The reply; for a turn without one an ERROR that says why, which nobody recorded."""
        try:
            return await self.reply()
        except ReportableError as problem:
            refusal = self.envelope.refusal(problem.status, str(problem), problem.code)
            refusal.data["do"] = problem.do
            return refusal

    def result(self) -> Envelope:
        """The reply of a turn that is over; raises what ``reply`` raises."""
        assert self._task is not None
        if self._task.cancelled():
            raise RequestCancelledError
        return self._task.result()

    @property
    def is_over(self) -> bool:
        """True once there is a reply, or will be none."""
        return self._task is not None and self._task.done()

    @property
    def was_stopped(self) -> bool:
        """True once it ended without a reply because it was cancelled."""
        return self._task is not None and self._task.cancelled()

    def cancel(self, reason: str = "stopped") -> None:
        """Stops its model call and its agent calls; ``reason`` stands in the record. Raises what ``stop`` raises."""
        self.why_stopped = reason
        if self._stop is not None:
            self._stop()
        else:
            self.abandon()

    def abandon(self) -> None:
        """Waits for its work no longer: this machine stops."""
        assert self._task is not None
        self._is_abandoned = True
        (self._runs_on or self._task).cancel()

    async def over_within(self, seconds: float | None) -> None:
        """Waits for its end, so long at most.

        (As ``asyncio.wait`` does, at a third of its price.)
        """
        assert self._task is not None
        if self._task.done():
            return
        loop = asyncio.get_running_loop()
        over = loop.create_future()

        def wake() -> None:
            if not over.done():
                over.set_result(None)

        self._at_end.append(wake)
        late = loop.call_later(seconds, wake) if seconds is not None else None
        try:
            await over
        finally:
            if late is not None:
                late.cancel()
            if self.over_at is None:
                self._at_end.remove(wake)

    def when_over(self, call: Callable[[], None]) -> None:
        """Calls ``call`` once it is over."""
        if self.over_at is None:
            self._at_end.append(call)
        else:
            asyncio.get_running_loop().call_soon(call)

    def tell(self, event: Event) -> None:
        """Adds one event and wakes the listeners; a state takes the place of the one before it.

        A turn that never stops talking is cut short.
        """
        if self._latest is not None and replaces(event, self._latest):
            self.octets -= len(self._events.pop()[1])
        elif len(self._events) >= KEEP_EVENTS:
            return
        self.number += 1
        self._latest = event
        self._events.append((self.number, encode(event)))
        self.octets += len(self._events[-1][1])
        if self._changed is not None:
            self._changed.set()

    async def events(self, after: int = 0) -> AsyncIterator[tuple[int, bytes]]:
        """Events with a number above ``after``, those to come included, until the turn is over. Its end is the reply."""
        seen = max(0, min(after, self.number))
        changed = self._changed = self._changed or asyncio.Event()
        while True:
            position = bisect_right(self._events, seen, key=itemgetter(0))
            while position < len(self._events) and self._events[position][0] > seen:
                seen, event = self._events[position]
                yield seen, event
                position = min(position + 1, len(self._events))
            if seen < self.number:  # what was read last has been replaced meanwhile
                continue
            if self.over_at is not None:
                return
            changed.clear()
            if seen == self.number and self.over_at is None:
                await changed.wait()

    def said(self) -> str:
        """The text of the answer so far."""
        return "".join(_delta(event).text for _, event in self._events if event.startswith(_DELTA))

    @property
    def is_settled(self) -> bool:
        """False where its end is not in the record yet: a repeat asks anew then, and gets what stands there."""
        assert self._task is not None
        return self._task.cancelled() or not isinstance(self._task.exception(), StoreError)

    def _ended(self, task: asyncio.Future[Envelope]) -> None:
        self.over_at = time.monotonic()
        if not task.cancelled():
            task.exception()  # raised for those who wait
        if self._changed is not None:
            self._changed.set()
        # One callback of the task for all of them: the event loop takes longer over each than most of them do.
        calls, self._at_end = self._at_end, []
        for call in calls:
            try:
                call()
            except Exception:
                log.exception("what follows turn %s failed", self.envelope.id)


class Turns:
    """Turns that run by themselves. Those that told something stay for a while, so that a reload can catch up."""

    def __init__(self, most: int = KEEP_OCTETS) -> None:
        """``most`` is the size up to which a turn that is over is kept, in octets; of others the record has the end."""
        self._most = most
        self._running: dict[_Key, Turn] = {}
        self._over: OrderedDict[_Key, Turn] = OrderedDict()
        self._octets = 0

    def running(self, sender: str, id: str) -> Turn | None:
        """The turn of that id that is under way."""
        return self._running.get((sender, id))

    def lately(self, sender: str, id: str) -> Turn | None:
        """The turn of that id, under way or lately over and kept with all that it said."""
        key = (sender, id)
        return self._running.get(key) or self._over.get(key)

    def begin(self, turn: Turn) -> Turn:
        """Begins a turn; it is found from now on."""
        turn.begin()
        self.add(turn)
        return turn

    def add(self, turn: Turn) -> None:
        """Lets a turn that begins be found until it is over."""
        key = (turn.envelope.sender, turn.envelope.id)
        self._running[key] = turn
        turn.when_over(lambda: self._ended(key, turn))

    def cancel(self, id: str) -> bool:
        """Stops the turn of that id; False when there is none under way."""
        turn = next((turn for (_, known), turn in self._running.items() if known == id), None)
        if turn is not None:
            turn.cancel()
        return turn is not None

    def __len__(self) -> int:
        """The number of turns under way."""
        return len(self._running)

    async def close(self) -> None:
        """Stops every turn and waits until they are gone."""
        turns = list(self._running.values())
        for turn in turns:
            turn.abandon()
        for turn in turns:
            await turn.over_within(None)

    def _ended(self, key: _Key, turn: Turn) -> None:
        if self._running.get(key) is turn:
            del self._running[key]
            self._forget(key)
            is_recorded = (
                0 < turn.octets <= self._most or turn.was_stopped
            )  # what said nothing is in the record
            if turn.tells and is_recorded and turn.is_settled:
                turn.envelope = replace(turn.envelope, data={})  # as large as a caller likes
                self._over[key] = turn
                self._octets += turn.octets
        self._forget_old()

    def _forget_old(self) -> None:
        now = time.monotonic()
        while self._over:
            key, oldest = next(iter(self._over.items()))
            assert oldest.over_at is not None
            recent = now - oldest.over_at <= KEEP_SECONDS
            if recent and len(self._over) <= KEEP_TURNS and self._octets <= KEEP_OCTETS:
                return
            self._forget(key)

    def _forget(self, key: _Key) -> None:
        if (known := self._over.pop(key, None)) is not None:
            self._octets -= known.octets


class RequestCancelledError(ReportableError):
    """The turn was stopped by its caller."""

    code = "stopped"
    status = 499

    def __init__(self) -> None:
        super().__init__("Stopped.")
