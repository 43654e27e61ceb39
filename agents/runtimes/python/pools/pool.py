"""A pool of workers with one plan: requests go in, answers come out."""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, Protocol

import orjson

from agents.errors import CallTimeoutError, WorkerDiedError, WorkerStartError
from agents.runtimes.python.pools.call import Call, OnCallback, OnUse, ReadAnswer, random_ids
from agents.runtimes.python.pools.config import PoolConfig
from agents.runtimes.python.pools.started_processes import descendants
from agents.runtimes.python.pools.worker_handle import WorkerHandle
from agents.runtimes.python.pools.worker_quota import WorkerQuota
from agents.runtimes.python.pools.zygote_client import ZygoteClient
from agents.runtimes.python.sandbox.syscalls import LINUX, anonymous_file

_TICK = 0.02
_PATIENCE = 0.02  # seconds that a call waits, all workers at work, before another is started
_LONG = 0.2  # seconds after which a worker's descendants are counted, and between two counts
_TRIES = 5
_LEAVE_SECONDS = 5.0
_FOREVER = float(10**9)
_BY_CHANCE = (None, -9)  # ends of a starting worker that say nothing about what it loads


class PoolOwner(Protocol):
    """The owner of all pools, as a pool needs it."""

    loop: asyncio.AbstractEventLoop

    def zygote(self) -> ZygoteClient:
        """The process that workers are forked from. Raises WorkerStartError."""
        ...

    def printed(self, key: str, pid: int, line: str) -> None:
        """A worker wrote a line."""
        ...

    def is_own_port(self, port: int) -> bool:
        """True for a port of this machine at which rappd itself listens."""
        ...


class PoolHooks(NamedTuple):
    """Calls of a pool to its owner. ``request_context`` must not block."""

    request_context: Callable[[], Mapping[str, Any]] = dict
    """Fields that are added to the body of every request, asked for each time."""
    on_unused: Callable[[], None] = lambda: None
    """Called when no worker and no request is left."""


class WorkerPool:
    """Workers that share one plan; each performs one call at a time, which this pool assigned to it.

    Calls are sent ahead to a worker that is at one of the same agent and caller (``together``) while these
    are quick.

    The first request starts the first worker; another is added while requests wait, up to the plan's
    number and what ``quota`` allows; all end after idling. Get one from ``WorkerSupervisor.pool``.
    """

    def __init__(
        self,
        key: str,
        plan: PoolConfig,
        supervisor: PoolOwner,
        quota: WorkerQuota | None = None,
        encoded: bytes = b"",
        hooks: PoolHooks = PoolHooks(),  # noqa: B008 - it cannot be changed
    ) -> None:
        self.key = key
        self.plan = plan
        self._hooks = hooks
        self._encoded = encoded or plan.encoded()
        self._supervisor = supervisor
        self._loop = supervisor.loop
        self._quota = quota
        self._ids = random_ids()
        self._backlog: deque[Call] = deque()
        self._soonest = 0.0  # no deadline in the backlog is earlier
        self._workers: list[WorkerHandle] = []
        self._idle: list[WorkerHandle] = []
        self._requests = 0
        self._last_used = 0.0
        self._last_count = 0.0
        self._ticker: asyncio.TimerHandle | None = None
        """Runs while anything is under way."""
        self._idling: asyncio.TimerHandle | None = None
        self._closing = False
        self._gone = asyncio.Event()
        self._gone.set()
        if quota is not None:
            quota.join(self)

    async def request(
        self,
        op: str,
        body: dict[str, Any],
        *,
        timeout: float | None,  # noqa: ASYNC109 - its effect, ending the worker, is the pool's own
        on_callback: OnCallback | None = None,
        together: Hashable | None = None,
        read: ReadAnswer = orjson.loads,
        on_use: OnUse | None = None,
    ) -> Any:
        """Have a worker perform ``op`` with ``body`` and return its answer.

        ``timeout`` seconds (None: no limit) count from now, waiting included; past them the worker is
        ended with all it started. So it is when the waiting task is cancelled. ``on_callback(operation,
        arguments)`` answers what the worker asks in between. Calls whose ``together`` is equal may know each
        other's arguments: they are of one agent file and class, one caller and one user. None: of no other
        call. ``read`` makes the value of the answer's JSON; ``on_use`` is told the hosts that it asks for. Raises AgentRaisedError, CallTimeoutError,
        AgentError (``read`` refused the answer), WorkerDiedError
        (the worker ended in the middle: nothing is performed twice), WorkerStartError (none could be
        started), and TypeError for a body that is not JSON.
        """
        context = self._hooks.request_context()
        if context:
            body = {**body, **context}
        ident = next(self._ids)
        frame = orjson.dumps((ident, op, body), option=orjson.OPT_NON_STR_KEYS)
        if self._closing:
            raise WorkerDiedError("The workers are being stopped", do="ask again once rappd is running")
        self._requests += 1
        limit = _FOREVER if timeout is None else timeout
        call = Call(
            ident,
            frame,
            self._loop.create_future(),
            time.monotonic(),
            limit,
            on_callback,
            together,
            read,
            on_use,
        )
        if self._backlog or not self._place(call):
            self._backlog.append(call)
            if call.deadline < self._soonest:
                self._soonest = call.deadline
            if self._idle or len(self._backlog) == 1:
                self.pump()
        if self._ticker is None:
            self._ticker = self._loop.call_later(_TICK, self._tick)
        try:
            return await call.future
        except asyncio.CancelledError:
            self._cancel(call)
            raise

    def retire(self, plan: PoolConfig | None = None, encoded: bytes = b"") -> None:
        """Lets the present workers finish their calls; later requests get fresh workers.

        ``plan`` is for the fresh ones; ``encoded`` is its encoded form, given by callers that must not read
        the disk.
        """
        if plan is not None:
            self.plan = plan
            self._encoded = encoded or plan.encoded()
        self._finish_all()
        self.pump()

    async def close(self) -> None:
        """End all workers at once; what they were doing fails with WorkerDiedError."""
        self._closing = True
        self.leave()
        self.fail_waiting(_stopped)
        self._idle.clear()
        for worker in self._workers:
            for call in worker.calls.values():
                call.fail(_stopped())
            worker.terminate("was stopped")
        if self._idling is not None:
            self._idling.cancel()
        with contextlib.suppress(TimeoutError):  # a process that even SIGKILL does not end is left behind
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._gone.wait()
        if self._ticker is not None:
            self._ticker.cancel()

    def stats(self) -> dict[str, Any]:
        """``{workers, pids, in_hand, waiting, requests}`` now; ``requests`` since the start."""
        calls = [call for worker in self._workers for call in worker.calls.values()]
        return {
            "workers": len(self._workers),
            "pids": [worker.pid for worker in self._workers if worker.pid],
            "in_hand": sum(not call.future.done() for call in calls),
            "waiting": len(self._backlog),
            "requests": self._requests,
        }

    # as the quota sees it

    @property
    def occupying(self) -> int:
        return sum(not worker.ending and not worker.asking for worker in self._workers)

    @property
    def waiting_since(self) -> float:
        return self._backlog[0].since if self._backlog else math.inf

    def idle_since(self) -> float:
        return min((worker.used for worker in self._idle), default=math.inf)

    def release_idle(self) -> None:
        if self._idle:
            worker = min(self._idle, key=lambda worker: worker.used)
            self._idle.remove(worker)
            worker.finish()

    def pump(self) -> None:
        """Give waiting calls to workers, and start a worker where there is none."""
        backlog = self._backlog
        while backlog and (backlog[0].future.done() or self._place(backlog[0])):
            backlog.popleft()
        if backlog and all(worker.ending for worker in self._workers):
            self._hire()

    def _place(self, call: Call) -> bool:
        """Give ``call`` to a worker, if there is one for it now."""
        if call.together is not None:
            for worker in self._workers:
                if worker.takes_ahead(call) and worker.assign_ahead(call):
                    return True
        if self._idle:
            self._idle.pop().assign(call)
            return True
        return False

    # told by the workers

    def on_ready(self, worker: WorkerHandle) -> None:
        if worker.idle:
            self._idle.append(worker)
            self.pump()

    def on_call_ended(self, worker: WorkerHandle) -> None:
        if worker.ending and not worker.calls:
            self._replace(worker)
        elif self._quota is not None and self._quota.refused and self._quota.pass_on(self):
            worker.finish()
            self._quota.pump()
        else:
            if worker.idle:
                self._idle.append(worker)
            if self._backlog:
                self.pump()

    def on_ending(self, worker: WorkerHandle) -> None:
        if worker in self._idle:
            self._idle.remove(worker)

    def on_taken_back(self, calls: list[Call]) -> None:
        self._backlog.extendleft(reversed(calls))
        self._soonest = 0.0
        if not self._closing:
            self._loop.call_soon(self.pump)

    def on_exit(self, worker: WorkerHandle, unread: Call | None) -> None:
        self._workers.remove(worker)
        self.on_ending(worker)
        if unread is not None and not unread.future.done():
            self._try_again(unread)
        if worker.plan is not self.plan:
            pass  # how it ended says nothing about workers of the present plan
        elif not worker.ready and (worker.refusal or worker.sentence or worker.status not in _BY_CHANCE):
            if not any(one.ready for one in self._workers):
                words = worker.end_in_words()
                self.fail_waiting(lambda: _start_problem(worker, words))
        elif not worker.ready and self._backlog:
            self._try_again(self._backlog.popleft())
        if not self._workers:
            self._gone.set()
        if not self._closing:
            self.pump()
            if self._quota is not None:
                self._quota.pump()
            if self._ticker is None:
                self._tell_unused()

    def printed(self, pid: int, line: str) -> None:
        self._supervisor.printed(self.key, pid, line)

    def is_own_port(self, port: int) -> bool:
        return self._supervisor.is_own_port(port)

    # time

    def _tick(self) -> None:
        self._ticker = self._loop.call_later(_TICK, self._tick)
        if not self._is_at_work(time.monotonic()):
            self._ticker.cancel()
            self._ticker = None
            self._tell_unused()

    def _is_at_work(self, now: float) -> bool:
        """Look at the clock; returns whether anything is still under way."""
        if self._backlog and now >= self._soonest:
            self._fail_late(now)
        for worker in self._workers:
            call = worker.call
            if call is not None and call.deadline <= now and not call.future.done():
                worker.settle()
                if worker.call is call:
                    worker.terminate(f"was stopped after {call.timeout:g} s")
                    words = f"The call was stopped after {call.timeout:g} s"
                    call.fail(CallTimeoutError(words, do="ask again, or raise its limit"))
            worker.tick(now)
        if self._backlog:
            self.pump()
            self._hire_if_slow(now)
        if now - self._last_count > _LONG:
            self._last_count = now
            self.enforce_process_limit(at_work_since=now - _LONG)
        self._last_used = now
        return bool(self._backlog) or any(worker.call is not None for worker in self._workers)

    def enforce_process_limit(self, at_work_since: float | None = None) -> bool:
        """End workers that have started about as many processes as they may; looks only at those at work on one call since then, if that is given.

        Returns whether there are any workers.
        """
        for worker in self._workers if LINUX else ():
            most = worker.plan.limits.processes
            long = at_work_since is None or (worker.call is not None and worker.assigned < at_work_since)
            if worker.pid and long:
                found = len(descendants(worker.pid, most))
                if found >= most - most // 10:
                    worker.terminate(f"had started {found} processes and was stopped")
                    if worker.call is None:
                        self.printed(worker.pid, f"(the worker {worker.sentence})")
        return bool(self._workers)

    def leave(self) -> None:
        """Count for the quota no more, which no worker of it does by now."""
        if self._quota is not None:
            self._quota.leave(self)
            self._quota = None

    def _tell_unused(self) -> None:
        if not self._workers and not self._backlog and not self._closing:
            self._hooks.on_unused()

    def fail_waiting(self, problem: Callable[[], Exception]) -> None:
        """Fail every call that no worker was given, each with a new ``problem``."""
        waiting = list(self._backlog)
        self._backlog.clear()
        for call in waiting:
            call.fail(problem())

    def _hire_if_slow(self, now: float) -> None:
        """Start another worker when the oldest call has waited for long and none is starting already."""
        if not self._backlog or not all(worker.ready for worker in self._workers if not worker.ending):
            return
        if now - self._backlog[0].since > _PATIENCE:
            self._hire()

    def _hire(self) -> None:
        """Order one more worker, if plan and quota allow it."""
        staying = sum(not worker.ending for worker in self._workers)
        if self._closing or staying >= self.plan.most_workers:
            return
        if self.plan.one_worker and self._workers:
            return  # state in memory has one owner: the next worker waits for the last to leave
        if self._quota is not None and not self.plan.one_worker and not self._quota.admit(self):
            return
        try:
            worker = WorkerHandle(self, self._supervisor.zygote(), self.plan)
        except WorkerStartError as refused:
            words, do = str(refused), refused.do
            self.fail_waiting(lambda: WorkerStartError(words, do=do))
            return
        self._workers.append(worker)
        self._gone.clear()
        try:
            plan_fd = anonymous_file(self._encoded)
            try:
                worker.spawn(plan_fd)
            finally:
                os.close(plan_fd)
        except OSError as problem:
            words = problem.strerror or str(problem)
            self._loop.call_soon(worker.give_up, words)
        if self._idling is None and math.isfinite(self.plan.idle_seconds):
            self._idling = self._loop.call_later(self.plan.idle_seconds, self._end_when_idle)

    def _replace(self, worker: WorkerHandle) -> None:
        """Start a successor at once, so that no later call waits for it."""
        if worker.sentence and not self._idle:
            self._hire()
        self.pump()

    def _try_again(self, call: Call) -> None:
        call.tries += 1
        if call.tries > _TRIES:
            call.fail(WorkerDiedError("Workers keep ending before they take the request", do="see the log"))
        else:
            self._backlog.appendleft(call)
            self._soonest = 0.0

    def _fail_late(self, now: float) -> None:
        waiting = [call for call in self._backlog if not call.future.done()]
        for call in waiting:
            if call.deadline <= now:
                words = f"The call waited {call.timeout:g} s for a free worker and was not started"
                call.fail(CallTimeoutError(words, do="ask again, or allow more workers"))
        self._backlog = deque(call for call in waiting if not call.future.done())
        self._soonest = min((call.deadline for call in self._backlog), default=_FOREVER)

    def _end_when_idle(self) -> None:
        self._idling = None
        if not self._workers:
            return
        idle = 0.0 if self._ticker else time.monotonic() - self._last_used
        if idle >= self.plan.idle_seconds:
            self._finish_all()
        else:
            self._idling = self._loop.call_later(self.plan.idle_seconds - idle, self._end_when_idle)

    def _finish_all(self) -> None:
        self._idle.clear()
        for worker in self._workers:
            worker.finish()

    def _cancel(self, call: Call) -> None:
        call.drop_tasks()
        for worker in self._workers:
            if call.ident in worker.calls:
                worker.settle()
                if call.ident in worker.calls:
                    worker.terminate("was stopped, since nobody waits for its answer")
                self.pump()
                return


def _stopped() -> WorkerDiedError:
    return WorkerDiedError("The worker was stopped", do="ask again once rappd is running")


def _start_problem(worker: WorkerHandle, words: str) -> Exception:
    if worker.refusal is None:
        return WorkerDiedError(
            f"The worker {words} before it could serve", do="see the log for what it printed"
        )
    problem = WorkerStartError(f"The worker could not be started: {worker.refusal}", do="see the log")
    problem.__cause__ = worker.refusal
    return problem
