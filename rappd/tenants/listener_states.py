"""States of listeners: a dict for each listener and thread, saved with the answer of the call that changed it.

Its key is the listener and the path of its call below the root of the caller's thread, so that no two conversations share
one. Calls of stateful listeners on the threads of one root are performed one after the other; what such a call calls
itself belongs to it, and does not wait for it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import orjson
from msgspec.structs import replace

from agents.contract.agent import Agent
from agents.runtimes.python.pools.runner import AgentResult
from envelopes.envelope import thread_id_below
from rappd.dispatch.turns import RequestContext
from rappd.store.records import ListenerState
from rappd.store.state_table import StateTable
from twins.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)

SWEEP_SECONDS = 3600.0


class StateKey(NamedTuple):
    """``thread`` is that of the call's path: the caller's path with the listener's name at its end."""

    root: str
    thread: str
    workspace: str
    listener: str


class HeldState:
    """The state of one key while calls use it. ``lock`` is held while a handler runs with it."""

    def __init__(self, key: StateKey, value: dict[str, Any]) -> None:
        self.key, self.value = key, value
        self.lock = asyncio.Lock()
        self.was_empty = not value

    def row(self) -> ListenerState | None:
        """The row to write with an answer; None where there is nothing to keep, and was nothing."""
        if self.was_empty and not self.value:
            return None
        self.was_empty = False
        return ListenerState(*self.key, orjson.dumps(self.value), time.time_ns() // 1000)


class CallStates:
    """States that one call of a stateful listener, and all that it calls, have in hand."""

    def __init__(self) -> None:
        self.by_key: dict[StateKey, HeldState] = {}


class StatefulCall:
    """A call of a stateful listener."""

    def __init__(self, state: HeldState, context: RequestContext, *, saves: bool) -> None:
        """``context`` is for what it calls; ``saves`` is False where a call around it, of the same key, saves for both."""
        self.context = context
        self._state, self._saves = state, saves
        self._before = state.value

    async def run(self, handler: Callable[..., Awaitable[AgentResult]]) -> AgentResult:
        """Calls ``handler(state=…)``; its state is what it returns, unless it failed."""
        async with self._state.lock:
            self._before = self._state.value
            ran = await handler(state=self._state.value)
            if ran.ok and ran.state is not None:
                self._state.value = ran.state
        return ran

    def undo(self) -> None:
        """The state is as it was before the handler ran."""
        self._state.value = self._before

    def saved(self) -> ListenerState | None:
        """The row to write with the answer, if one is to be written."""
        return self._state.row() if self._saves else None


class ListenerStates:
    """The states of all tenants."""

    def __init__(self, table: StateTable, idle_seconds: Callable[[], float]) -> None:
        """After ``idle_seconds`` in which no listener of a root answered, its states are gone."""
        self._table, self._idle_seconds = table, idle_seconds
        self._roots: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._ending = BackgroundTasks(
            lambda error: log.warning("states of a thread that is over are forgotten later: %s", error)
        )

    @asynccontextmanager
    async def call(self, context: RequestContext, agent: Agent) -> AsyncIterator[StatefulCall]:
        """Waits until this listener may be called on the thread of ``context``, and gives its state there."""
        key = key_of(context, agent)
        if isinstance(context.states, CallStates):
            yield await self._within(context, context.states, key)
            return
        lock = self._roots.setdefault(key.root, asyncio.Lock())
        async with lock:
            yield await self._within(context, CallStates(), key)

    async def _within(self, context: RequestContext, states: CallStates, key: StateKey) -> StatefulCall:
        if key not in states.by_key:
            found = await self._table.get(*key, since=self._oldest())
            states.by_key.setdefault(key, HeldState(key, orjson.loads(found) if found else {}))
        context.kept.append(key)
        inner = replace(context, states=states, stateful=(*context.stateful, key))
        return StatefulCall(states.by_key[key], inner, saves=key not in context.stateful)

    async def end(self, root: str) -> int:
        """Forgets the states below a root thread, once no call uses them; returns how many there were."""
        lock = self._roots.setdefault(root, asyncio.Lock())
        async with lock:
            count = await self._table.count(root)
            await self._table.end(root)
        return count

    def turn_over(self, context: RequestContext) -> None:
        """Forgets what was kept for a thread that no later request continues, after the answer of its one turn."""
        if context.once and context.kept:
            self._ending.spawn(self.end_unless_waited_for(context.kept[0].root))

    async def close(self) -> None:
        """Waits for what is being forgotten."""
        await self._ending.settle()

    async def end_unless_waited_for(self, root: str) -> None:
        """Forgets the states below a root thread, unless a delay comes back to it."""
        lock = self._roots.setdefault(root, asyncio.Lock())
        async with lock:
            await self._table.end_unless_waited_for(root)

    async def sweep(self) -> None:
        """Removes what nobody used for long, now and every hour."""
        while True:
            await self._table.end_idle(self._oldest())
            await asyncio.sleep(SWEEP_SECONDS)

    def _oldest(self) -> int:
        return int((time.time() - self._idle_seconds()) * 1e6)


def key_of(context: RequestContext, agent: Agent) -> StateKey:
    """The key of a listener's state when it is called with ``context``.

    A thread that was forked for the call has its place already; one that is merely called so has not.
    """
    path = context.path or (context.envelope.thread,)
    names = path[1:] if context.forked == agent.name else (*path[1:], agent.name)
    return StateKey(path[0], thread_id_below(path[0], names), context.workspace, agent.name)
