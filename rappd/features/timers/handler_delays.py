"""Delays of handlers: a row among the durable timers; its end is a turn on the thread that it was begun on."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable
from typing import Any

import orjson

from agents.runtimes.python.pools.answers import EmittedPayload
from envelopes.envelope import HELP, Envelope
from rappd.dispatch.at_most_once import Timed
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.turns import Handler, RecordedCall, RequestContext
from rappd.errors import ConflictError, NotFoundError, RefusedError, StoreError
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
_LOOK_SECONDS = 0.1
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
    ) -> None:
        """``tenant`` gives the one of a workspace, opened if need be; ``reserve`` counts a model call, or refuses it."""
        self._timers, self._rights, self._dispatcher, self._tenant = timers, rights, dispatcher, tenant
        self._states, self._reserve = states, reserve
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
            "forked": context.forked,
            "once": context.once,
            "listener": listener,
            "payload": inner,
            "within": context.timer,
        }
        until = time.time() + seconds
        row = TimerRow(
            id=self._id(context, listener),
            kind=DELAY,
            rule="",
            zone="",
            next=until,
            caller=setter.key,
            detail=detail,
        )
        await self._timers.put(row)
        return until

    def _id(self, context: RequestContext, listener: str) -> str:
        """The id of a new delay; in a turn that a timer began, which a kill may repeat, it is that of its place there."""
        if not context.timer:
            return secrets.token_hex(8)
        place = f"{context.envelope.thread}\n{listener}"
        context.delays.append(place)
        seed = f"delay\n{context.timer}\n{place}\n{context.delays.count(place)}"
        return hashlib.sha256(seed.encode()).hexdigest()[:16]

    def _is_begun(self, row: TimerRow) -> bool:
        """False while the turn of a timer that began this delay is not over: a repeat of it begins this one anew."""
        within = row.detail.get("within")
        return not within or all(turn_id(one) != within for one in self._timers.rows)

    async def _fire(self, row: TimerRow) -> None:
        while True:
            if self._is_begun(row):
                break
            await asyncio.sleep(_LOOK_SECONDS)
        if row.id not in {one.id for one in self._timers.rows}:
            return  # cancelled meanwhile
        while True:
            try:
                async with self._room:
                    await self._performed(row)
                    break
            except (StoreError, ConflictError) as problem:  # a full disk, a twin that stops just now
                log.warning("delay %s is tried again: %s", row.id, problem)
                await asyncio.sleep(_AGAIN_SECONDS)
        with contextlib.suppress(NotFoundError):  # cancelled while it was performed
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
        late = max(0, round(time.time() - row.next))
        name, path = row.detail["listener"], tuple(row.detail["path"])
        data = {
            "user_input": f"{row.detail['what']}.",
            "by": name,
            "via": "timer",
            "delay": {"id": row.id, "due": int(row.next * 1000), "late": late},
        }
        payload = emitted_of(row.detail["payload"])

        answered: list[RecordedCall] = []

        def harmless(calls: list[RecordedCall]) -> bool:
            answered.extend(calls)
            return tenant.requests.may_repeat(calls, timed=turn_id(row))

        def handler(_: Handler) -> Handler:
            async def handle(context: RequestContext) -> dict[str, Any]:
                context.model_call, context.answered = self._reserve, answered
                context.forked = row.detail.get("forked", _forked(name, path))
                reply = await tenant.requests.go_on(context, name, payload)
                return {"response": reply, "agent_logs": "", "model": "", "requested_model": ""}

            return handle

        found = self._dispatcher.endpoints.named(tenant.name, name)
        repeatable = found is not None and found.agent is not None and found.agent.idempotent
        envelope = Envelope(turn_id(row), setter.sender, tenant.id, HELP, data)
        timed = Timed(
            row.detail["thread"],
            handler,
            repeatable=repeatable,
            harmless=harmless,
            path=path if len(path) > 1 else (),
            once=row.detail["once"],
        )
        await self._dispatcher.submit_once(envelope, caller, timed=timed).reply()


def _forked(listener: str, path: tuple[str, ...]) -> str:
    """The same for a delay that was begun before rows held it."""
    own = len(path) > 1 and re.fullmatch(rf"{re.escape(listener)}(-[0-9]+)?", path[-1]) is not None
    return listener if own else ""
