"""Delays of handlers: a row among the durable timers; its end is a turn on the thread that it was begun on."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from agents.runtime.answers import EmittedPayload
from envelopes.envelope import HELP, Envelope
from rappd.dispatch.at_most_once import Timed
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.turns import Handler, RequestContext
from rappd.errors import ConflictError, RefusedError, StoreError
from rappd.features.timers.firing import turn_id
from rappd.features.timers.setters import SetterRights, kept, read_setter, setter_of
from rappd.sessions.schedule.timers import Timers
from rappd.store.state_table import DELAY
from rappd.store.timer_table import TimerRow
from rappd.tenants.listener_states import ListenerStates
from rappd.tenants.primitives import emitted_of
from rappd.tenants.tenant import Tenant

log = logging.getLogger(__name__)

MOST = 1000
"""Delays of one caller that wait."""
_AGAIN_SECONDS = 5.0
_AT_ONCE = 16


class Delays:
    """Begins delays, and performs what they come to. A handler that waits has no process, worker or connection meanwhile."""

    def __init__(
        self,
        timers: Timers,
        rights: SetterRights,
        dispatcher: Dispatcher,
        tenant: Callable[[str], Awaitable[Tenant]],
        states: ListenerStates,
        reserve: Callable[[], Awaitable[None]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``tenant`` gives the one of a workspace, opened if need be; ``reserve`` counts a model call, or refuses it."""
        self._timers, self._rights, self._dispatcher, self._tenant = timers, rights, dispatcher, tenant
        self._states, self._reserve, self._clock = states, reserve, clock
        self._room = asyncio.Semaphore(_AT_ONCE)
        timers.register(DELAY, self._fire)

    async def set(
        self, context: RequestContext, listener: str, seconds: float, payload: EmittedPayload
    ) -> float:
        """Begins a delay; its end, in seconds since 1970. Raises ``RefusedError``, ``ConflictError``, ``StoreError``."""
        setter = setter_of(context.caller, context.person)
        waiting = sum(row.kind == DELAY and row.caller == setter.key for row in self._timers.rows)
        if waiting >= MOST:
            raise ConflictError(
                f"{MOST} delays wait already; this one was not begun.", do="rappd timers list"
            )
        path = context.path or (context.envelope.thread,)
        inner = (
            {"text": payload.text}
            if payload.text is not None
            else {"root": payload.root, "data": orjson.loads(bytes(payload.data))}
        )
        detail: dict[str, object] = {
            "what": f"{listener} goes on",
            "by": kept(setter),
            "workspace": context.workspace,
            "thread": context.envelope.thread,
            "root": path[0],
            "path": list(path),
            "once": context.once,
            "listener": listener,
            "payload": inner,
        }
        until = self._clock() + seconds
        row = TimerRow(
            id=secrets.token_hex(8),
            kind=DELAY,
            rule="",
            zone="",
            next=until,
            caller=setter.key,
            detail=detail,
        )
        await self._timers.put(row)
        return until

    async def _fire(self, row: TimerRow) -> None:
        while True:
            try:
                async with self._room:
                    await self._performed(row)
                    break
            except (StoreError, ConflictError) as problem:  # a full disk, a twin that stops just now
                log.warning("delay %s is tried again: %s", row.id, problem)
                await asyncio.sleep(_AGAIN_SECONDS)
        await self._timers.remove(row.id)
        if row.detail["once"]:
            await self._states.end_unless_waited_for(row.detail["root"])

    async def _performed(self, row: TimerRow) -> None:
        setter = read_setter(row.detail["by"])
        try:
            caller = await self._rights.now(setter)
        except RefusedError as gone:
            log.warning("delay %s of %s comes to nothing: %s", row.id, row.caller, gone)
            return
        tenant = await self._tenant(row.detail["workspace"])
        late = max(0, round(self._clock() - row.next))
        name, path = row.detail["listener"], tuple(row.detail["path"])
        data = {
            "user_input": f"{row.detail['what']}.",
            "by": name,
            "via": "timer",
            "delay": {"id": row.id, "due": int(row.next * 1000), "late": late},
        }
        payload = emitted_of(row.detail["payload"])

        def handler(_: Handler) -> Handler:
            async def handle(context: RequestContext) -> dict[str, Any]:
                context.model_call = self._reserve
                told = await tenant.requests.go_on(context, name, payload)
                return {"response": told, "agent_logs": "", "model": "", "requested_model": ""}

            return handle

        found = self._dispatcher.endpoints.named(tenant.name, name)
        repeatable = found is not None and found.agent is not None and found.agent.idempotent
        envelope = Envelope(turn_id(row), setter.sender, tenant.id, HELP, data)
        timed = Timed(
            row.detail["thread"],
            handler,
            repeatable=repeatable,
            path=path if len(path) > 1 else (),
            once=row.detail["once"],
        )
        await self._dispatcher.submit_once(envelope, caller, timed=timed).reply()
