"""The workers of one workspace, as the daemon uses them: a request goes in, an answer comes out."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import orjson

from agents.errors import WorkerGone, WorkerRefused
from agents.worker.ancestry import descendants
from agents.worker.call import Call, OnCallback
from agents.worker.plan import CrewPlan
from agents.worker.shift import Shift, not_started
from agents.worker.syscalls import LINUX

if TYPE_CHECKING:
    from agents.worker.workforce import Workforce

_PATIENCE = 0.02  # seconds a request waits, all workers at work, before another is hired
_IDLE_PATIENCE = 0.5  # the same while one is free: it takes the request once the system lets it run
_LONG = 0.2  # seconds after which a worker's descendants are counted, and between two counts
_TRIES = 5
_LEAVE_SECONDS = 5.0
_FOREVER = float(10**9)


class Crew:
    """All workers of a workspace share one queue: whoever is free takes the next request.

    The first request starts the first worker; another is added while requests wait, up to the plan's
    number; all end after idling. Get one from ``Workforce.crew``.
    """

    def __init__(self, key: str, plan: CrewPlan, workforce: Workforce) -> None:
        self.key = key
        self.plan = plan
        self._encoded = plan.encoded()
        self._workforce = workforce
        self._loop = workforce.loop
        self._backlog: deque[Call] = deque()
        self._soonest = 0.0  # no deadline in the backlog is earlier
        self._shift: Shift | None = None
        self._leaving: set[Shift] = set()
        self._last_ident = 0
        self._last_used = 0.0
        self._last_count = 0.0
        self._offered = False  # in this round of the loop: waking a worker for each request takes longest
        self._idling: asyncio.TimerHandle | None = None
        self._closing = False
        self._gone = asyncio.Event()
        self._gone.set()
        self.ticking = False
        self.standing: Callable[[], Mapping[str, Any]] | None = None
        """What goes along in the body of every request, asked for each time; must not block."""

    async def request(
        self,
        op: str,
        body: dict[str, Any],
        *,
        timeout: float | None,  # noqa: ASYNC109 - its effect, ending the worker, is the crew's own
        on_callback: OnCallback | None = None,
    ) -> Any:
        """Have a worker's room perform ``op`` with ``body`` and return its answer.

        ``timeout`` seconds (None: no limit) count from now, waiting included; past them the worker is
        ended with all it started. So it is when the waiting task is cancelled. ``on_callback(operation,
        arguments)`` answers what the worker asks in between. Raises AgentRaised, CallTimeout, WorkerGone
        (the worker ended in the middle: nothing is performed twice), WorkerRefused (none could be
        started), and TypeError for a body that is not JSON.
        """
        standing = self.standing() if self.standing is not None else None
        if standing:
            body = {**body, **standing}
        encoded = orjson.dumps((op, body), option=orjson.OPT_NON_STR_KEYS)
        if self._closing:
            raise WorkerGone("The workers are being stopped", do="ask again once rappd is awake")
        self._last_ident += 1
        limit = _FOREVER if timeout is None else timeout
        future: asyncio.Future[Any] = self._loop.create_future()
        call = Call(self._last_ident, encoded, future, time.monotonic(), limit, on_callback)
        shift = self._shift
        if shift is None or self._backlog or self._offered or not shift.offer(call):
            self._backlog.append(call)
            self._soonest = min(self._soonest, call.deadline)
            if not self._offered:
                self.pump()
        else:
            self._offered = True
            self._loop.call_soon(self._round_over)
        if not self.ticking:
            self._workforce.watch(self)
        try:
            return await future
        except asyncio.CancelledError:
            self._abandon(call)
            raise

    def retire(self, plan: CrewPlan | None = None) -> None:
        """Let the present workers finish what they have; later requests get fresh ones (by ``plan``)."""
        if plan is not None:
            self.plan = plan
            self._encoded = plan.encoded()
        if self._shift is not None:
            self.replace(self._shift)
            self.pump()

    async def close(self) -> None:
        """End all workers at once; what they were doing fails with WorkerGone."""
        self._closing = True
        self.fail_waiting(_stopped)
        for shift in self._shifts():
            for call in list(shift.sent.values()):
                call.fail(_stopped())
            shift.stop("was stopped")
        if self._idling is not None:
            self._idling.cancel()
        with contextlib.suppress(TimeoutError):  # a process that even SIGKILL does not end is left behind
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._gone.wait()

    def stats(self) -> dict[str, Any]:
        """``{workers, pids, in_hand, waiting, requests}`` now; ``requests`` since the start."""
        links = [link for shift in self._shifts() for link in shift.workers.values()]
        in_hand = sum(1 for shift in self._shifts() for call in shift.sent.values() if not call.future.done())
        return {
            "workers": len(links),
            "pids": [link.pid for link in links if link.pid],
            "in_hand": in_hand,
            "waiting": len(self._backlog),
            "requests": self._last_ident,
        }

    # told by the shifts

    def pump(self) -> None:
        """Move waiting requests into the queue, opening a shift and starting a worker where needed."""
        backlog = self._backlog
        while backlog:
            if backlog[0].future.done():
                backlog.popleft()
                continue
            if self._shift is None and not self._open_shift():
                return
            assert self._shift is not None
            if not self._shift.offer(backlog[0]):
                return
            backlog.popleft()

    def _round_over(self) -> None:
        self._offered = False
        self.pump()

    def replace(self, shift: Shift) -> None:
        """Close ``shift``; the next request opens another."""
        if shift is self._shift:
            self._shift = None
            self._leaving.add(shift)
        shift.close()

    def ended(self, shift: Shift, unstarted: list[Call]) -> None:
        """``shift`` has no workers any more; ``unstarted`` were never begun and are still wanted."""
        if shift is self._shift:
            self._shift = None
        self._leaving.discard(shift)
        for call in unstarted:
            call.tries += not shift.achieved
            if call.tries > _TRIES:
                call.fail(WorkerGone("Workers keep ending before they take the request", do="see the log"))
        self._backlog.extendleft(reversed(unstarted))
        self._soonest = 0.0
        if not self._shifts():
            self._gone.set()
        if not self._closing:
            self.pump()

    def fail_waiting(self, problem: Callable[[], Exception]) -> None:
        """Fail every request that nobody has started, each with a new ``problem``."""
        waiting = [*self._backlog]
        self._backlog.clear()
        for shift in self._shifts():
            if not shift.workers:
                waiting += shift.sent.values()
        for call in waiting:
            call.fail(problem())

    def printed(self, pid: int, line: str) -> None:
        """A worker wrote a line."""
        self._workforce.printed(self.key, pid, line)

    def tick(self, now: float) -> bool:
        """Look at the clock; returns whether anything is still under way."""
        if self._backlog and now >= self._soonest:
            self._fail_late(now)
        if self._backlog:
            self.pump()
        for shift in self._shifts():
            shift.tick(now)
        if self._shift is not None and not self._shift.starting():
            oldest = self._shift.waiting() or next(iter(self._backlog), None)
            patience = _IDLE_PATIENCE if self._shift.has_free() else _PATIENCE
            if (
                oldest is not None
                and now - max(oldest.since, self._shift.staffed) > patience
                and self._shift.flowing(now - _PATIENCE / 2) < _processors()
            ):
                self._shift.hire()
        if now - self._last_count > _LONG:
            self._last_count = now
            self.stop_multipliers(at_work_since=now - _LONG)
        self._last_used = now
        return bool(self._backlog) or any(shift.sent for shift in self._shifts())

    def stop_multipliers(self, at_work_since: float | None = None) -> bool:
        """End workers that have started about as many processes as they may; looks only at those at work
        on one request since then, if that is given. Returns whether there are any workers."""
        links = [(shift, link) for shift in self._shifts() for link in shift.workers.values()]
        for shift, link in links if LINUX else ():
            most = shift.plan.limits.processes
            if link.pid and (at_work_since is None or (link.seen and link.since < at_work_since)):
                found = len(descendants(link.pid, most))
                if found >= most - most // 10:
                    link.doom(f"had started {found} processes and was stopped")
                    if not link.seen:
                        self.printed(link.pid, f"(the worker {link.sentence})")
        return bool(links)

    def _fail_late(self, now: float) -> None:
        waiting = [call for call in self._backlog if not call.future.done()]
        for call in waiting:
            if call.deadline <= now:
                call.fail(not_started(call))
        self._soonest = min((call.deadline for call in waiting if call.deadline > now), default=_FOREVER)

    def _open_shift(self) -> bool:
        if self._closing or (self.plan.one_worker and self._leaving):
            return False  # state in memory has one owner: the next worker waits for the last to leave
        try:
            self._shift = Shift(self, self._workforce.template(), self.plan, self._encoded)
        except WorkerRefused as refused:
            words, do = str(refused), refused.do
            self.fail_waiting(lambda: WorkerRefused(words, do=do))
            return False
        except OSError as problem:
            words = f"No worker can be started: {problem.strerror}"
            self.fail_waiting(lambda: WorkerRefused(words, do="try again"))
            return False
        self._gone.clear()
        self._shift.hire()
        if self._idling is None and math.isfinite(self.plan.idle_seconds):
            self._idling = self._loop.call_later(self.plan.idle_seconds, self._rest)
        return True

    def _rest(self) -> None:
        self._idling = None
        if self._shift is None:
            return
        idle = 0.0 if self.ticking else time.monotonic() - self._last_used
        if idle >= self.plan.idle_seconds:
            self.replace(self._shift)
        else:
            self._idling = self._loop.call_later(self.plan.idle_seconds - idle, self._rest)

    def _abandon(self, call: Call) -> None:
        call.drop_tasks()
        for shift in self._shifts():
            if call.ident in shift.sent:
                shift.withdraw(call, "was stopped, since nobody waits for its answer")

    def _shifts(self) -> list[Shift]:
        return [*self._leaving, self._shift] if self._shift is not None else [*self._leaving]


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if LINUX else os.cpu_count() or 1


def _stopped() -> WorkerGone:
    return WorkerGone("The worker was stopped", do="ask again once rappd is awake")
