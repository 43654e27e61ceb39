"""A timer that is due becomes a turn in the conversation that it was set in, and its setter is told."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

from envelopes.envelope import DONE, ERROR, HELP, Envelope, as_uuid
from envelopes.errors import ReportableError
from rappd.dispatch.at_most_once import Timed
from rappd.dispatch.dispatcher import Dispatcher
from rappd.dispatch.turns import Handler, RequestContext
from rappd.errors import (
    ConflictError,
    NotFoundError,
    RefusedError,
    StoreError,
    UsageProblemError,
    disk_problem,
)
from rappd.features.timers.model_call_limit import ModelCalls
from rappd.features.timers.setters import Setter, SetterRights, read_setter
from rappd.features.timers.text import clock_text, late_text
from rappd.features.timers.turn_timers import TURN, TurnTimers
from rappd.notices.notices import Notices
from rappd.sessions.schedule.quiet_hours import quiet_until
from rappd.sessions.schedule.timers import Timers
from rappd.store.timer_table import TimerRow
from rappd.tenants.tenant import HOST, Tenant

log = logging.getLogger(__name__)

TELLING = "telling"
"""The kind of timers that tell the owner, after quiet hours, what was said meanwhile."""
MOST_FAILURES = 3
"""So many in a row pause a repetition."""
_AGAIN_SECONDS = 5.0
_AT_ONCE = 4
"""Turns of timers at the same time: after a stop, many may be due."""
_FAILED = re.compile(r"^\[(.+?)\] ERROR: (.*)", re.MULTILINE)
_CALLED = re.compile(r"^\[(.+?)\] ", re.MULTILINE)


class TimerFiring:
    """Performs timers of the kind ``TURN``. Its turns have ids made of timer and moment, so that each happens once."""

    def __init__(
        self,
        timers: Timers,
        turn_timers: TurnTimers,
        rights: SetterRights,
        dispatcher: Dispatcher,
        tenant: Callable[[str], Awaitable[Tenant]],
        model_calls: ModelCalls,
        notices: Notices,
        quiet: Callable[[], str],
        clock: Callable[[], float] = time.time,
        spoke: Callable[[str, str], None] = lambda user, thread: None,
    ) -> None:
        """``tenant`` gives the brainstem or twin of a workspace, opened if need be. ``quiet``: the owner's quiet hours.

        ``spoke`` gets the user and the thread of each turn that is over.
        """
        self._timers, self._turn_timers, self._rights = timers, turn_timers, rights
        self._dispatcher, self._tenant, self._model_calls = dispatcher, tenant, model_calls
        self._notices, self._quiet, self._clock, self._spoke = notices, quiet, clock, spoke
        self._room = asyncio.Semaphore(_AT_ONCE)
        timers.register(TURN, self._fire)
        timers.register(TELLING, self._tell_later)

    async def _fire(self, row: TimerRow) -> dict[str, object] | None:
        while True:
            try:
                async with self._room:
                    return await self._performed(row)
            except (
                StoreError,
                ConflictError,
            ) as problem:  # a full disk, a twin that stops just now: nothing is lost
                log.warning("timer %s is tried again: %s", row.id, problem)
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _performed(self, row: TimerRow) -> dict[str, object] | None:
        setter = read_setter(row.detail["by"])
        try:
            caller = await self._rights.now(setter)
        except RefusedError as gone:
            await self._give_up(row, str(gone))
            return None
        problem: ReportableError | None = None
        try:
            tenant = await self._tenant(row.detail["workspace"])
            problem = self._gone(tenant, row)
        except StoreError:
            raise
        except OSError as error:
            if (full := disk_problem(error)) is None:
                raise
            raise full from error
        except (
            ReportableError
        ) as error:  # the twin is gone, or stopped: said in its conversation all the same
            tenant, problem = await self._tenant(HOST), error
        late = max(0.0, self._clock() - row.next)
        handled = _Handled(self, row, problem, late)
        envelope = Envelope(turn_id(row), setter.sender, tenant.id, HELP, self._data(row, late))
        timed = Timed(
            row.detail["thread"],
            handled.handler,
            repeatable=not row.detail["asks"],
            harmless=tenant.requests.may_repeat,
        )
        reply = await self._dispatcher.submit_once(envelope, caller, timed=timed).reply()
        if not handled.ran and row.last >= row.next:  # the clock was set back: this moment was told before
            return None
        await self._turn_timers.remember_told(row)
        self._spoke(setter.sender, row.detail["thread"])
        return self._ended(row, setter, late, reply)

    async def handle(
        self, context: RequestContext, handler: Handler, row: TimerRow, late: float
    ) -> dict[str, Any]:
        """The DONE's data of a turn."""
        what = row.detail["what"]
        if not row.detail["asks"]:
            reminder = f"Reminder: {what}."
            return {
                "response": f"{reminder} {late_text(row, late)}".strip(),
                "agent_logs": "",
                "model": "",
                "requested_model": "",
            }
        context.model_call = self.reserve
        done = await handler(context)
        if lateness := late_text(row, late):
            done["response"] = f"{done.get('response', '')}\n\n{lateness}".strip()
            if "result" in done:
                done["result"] = done["response"]
        return done

    async def reserve(self) -> None:
        """Counts a model call of a timer. Raises ``no_model_calls_left``."""
        while True:
            try:
                return await self._model_calls.reserve()
            except StoreError as problem:  # a full disk: the question waits, lest it is answered with that
                log.warning("a timer's model call cannot be counted yet: %s", problem)
                await asyncio.sleep(_AGAIN_SECONDS)

    def _data(self, row: TimerRow, late: float) -> dict[str, Any]:
        asks = bool(row.detail["asks"])
        text = (
            row.detail["what"]
            if asks
            else f"Reminder, due {clock_text(row.next, row.zone)}: {row.detail['what']}"
        )
        timer = {"id": row.id, "due": int(row.next * 1000), "asks": asks, "late": round(late)}
        return {"user_input": text, "by": "Timer", "via": "timer", "timer": timer}

    def _gone(self, tenant: Tenant, row: TimerRow) -> ReportableError | None:
        """An error where every agent that served this timer before is gone, or quarantined."""
        used = [str(name) for name in row.detail.get("agents", ())]
        here = [name for name in used if self._dispatcher.endpoints.named(tenant.name, name) is not None]
        if not used or here:
            return None
        names = ", ".join(used)
        return NotFoundError(
            f"{names}, which did this before, is gone or quarantined.", do="rappd agents list"
        )

    def _ended(self, row: TimerRow, setter: Setter, late: float, reply: Envelope) -> dict[str, object]:
        detail = dict(row.detail)
        text = str(reply.data.get("response") or reply.data.get("result") or "")
        failure = _failure(reply)
        if row.detail["asks"] and not failure:
            called = list(dict.fromkeys(_CALLED.findall(str(reply.data.get("agent_logs", "")))))
            detail["agents"] = called[:8]
        failures = int(detail.get("failures", 0)) + 1 if failure else 0
        detail["failures"] = failures
        what = row.detail["what"]
        if failure:
            paused = bool(row.rule) and failures >= MOST_FAILURES
            if paused:
                detail["paused"] = True
                failed = f"“{what}” failed {failures} times and is paused: {failure}"
                self._tell(row, setter, failed, f"rappd timers resume {row.id}", key=f"timer-paused:{row.id}")
            elif failures == 1:
                notice = f"“{what}” was not done: {failure} {late_text(row, late)}".strip()
                self._tell(row, setter, notice, "rappd timers list")
        elif row.detail["asks"]:
            notice = f"{what}: {text.partition(chr(10))[0]} {late_text(row, late)}".strip()
            self._tell(row, setter, notice, "")
        else:  # its text says how late it is
            self._tell(row, setter, text.partition("\n")[0], "")
        return detail

    def _tell(self, row: TimerRow, setter: Setter, what: str, do: str, key: str = "") -> None:
        """Tells the owner. A guest's phone, a machine and a program are told in their conversation alone."""
        if setter.is_owner:
            self._tell_owner(row, what, do, key or f"timer:{turn_id(row)}")

    def _tell_owner(self, row: TimerRow, what: str, do: str, key: str) -> None:
        try:
            until = quiet_until(self._quiet(), self._clock(), self._turn_timers.zone)
        except UsageProblemError as problem:  # written into the file by hand
            log.warning("timers.quiet or timers.zone cannot be read: %s", problem)
            until = 0.0
        if not until:
            self._notices.add(what, do, kind="timer", key=key)
            return
        detail = {"what": what, "do": do, "key": key, "due": row.next}
        later = TimerRow(
            id=f"tell:{key}",
            kind=TELLING,
            rule="",
            zone=row.zone,
            next=until,
            caller=row.caller,
            detail=detail,
        )
        task = asyncio.ensure_future(self._timers.put(later))
        task.add_done_callback(_log_failure)

    async def _tell_later(self, row: TimerRow) -> None:
        sentence = (
            f"{row.detail['what']} (at {clock_text(row.detail['due'], row.zone)}, told after the quiet hours)"
        )
        self._notices.add(sentence, row.detail["do"], kind="timer", key=row.detail["key"])

    async def _give_up(self, row: TimerRow, why: str) -> None:
        """Removes a timer whose setter may set none any more; its words stay its setter's."""
        await self._timers.remove(row.id)
        log.warning("timer %s of %s is removed: %s", row.id, row.caller, why)
        what = f"A timer that was due was not performed, and is removed: {why}"
        self._tell_owner(row, what, "rappd timers list", f"timer-gone:{row.caller}")


class _Handled:
    """The handler of one turn; ``ran`` is False where its answer was recorded before."""

    def __init__(
        self, firing: TimerFiring, row: TimerRow, problem: ReportableError | None, late: float
    ) -> None:
        self._firing, self._row, self._problem, self._late = firing, row, problem, late
        self.ran = False

    def handler(self, inner: Handler) -> Handler:
        async def handle(context: RequestContext) -> dict[str, Any]:
            self.ran = True
            if self._problem is not None:
                raise self._problem
            return await self._firing.handle(context, inner, self._row, self._late)

        return handle


def turn_id(row: TimerRow) -> str:
    """The id of the turn that a timer is at its moment: the same whenever it is repeated."""
    return as_uuid(hashlib.sha256(f"timer\n{row.id}\n{row.next!r}".encode()).hexdigest(), "8")


def _failure(reply: Envelope) -> str:
    """The reason for which a turn did not do what was asked; "" where it did."""
    if reply.verb == ERROR:
        return str(reply.data.get("msg", ""))
    failed = _FAILED.findall(str(reply.data.get("agent_logs", ""))) if reply.verb == DONE else []
    return f"{failed[-1][0]}: {failed[-1][1]}" if failed else ""


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("what was said in quiet hours could not be kept for later: %s", error)
