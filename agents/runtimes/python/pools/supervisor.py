"""All workers of this daemon: the zygote they are forked from, and their pools."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from agents.errors import WorkerStartError
from agents.runtimes.python.pools.config import PoolConfig
from agents.runtimes.python.pools.pool import PoolHooks, WorkerPool
from agents.runtimes.python.pools.worker_quota import WorkerQuota
from agents.runtimes.python.pools.zygote_client import LaunchZygote, ZygoteClient, ZygoteSettings
from agents.runtimes.python.sandbox.sandbox import AUTO

OnOutput = Callable[[str, int, str], None]

_COUNT = 1.0
_PROCESSES_OF_ALL = 4096
_ATTEMPTS = 3


class WorkerSupervisor:
    """Starts workers and keeps their pools.

    ``on_output(pool's key, process id, line)`` gets what they print. ``environ`` is the zygote's
    environment and must hold nothing secret; workers get their plan's instead. ``preload`` are modules
    that hold rooms. ``sandbox`` is "auto", or one kind to use ("mount namespace", "landlock", "none").
    ``may_read``: paths among the account's private ones that workers may read; ``*`` for all. ``launch``
    starts the zygote, in place of ``launch_zygote``. ``is_own_port``: ports of rappd, to which no need leads.
    """

    def __init__(
        self,
        *,
        on_output: OnOutput | None = None,
        environ: Mapping[str, str] | None = None,
        preload: Sequence[str] = (
            "agents.runtimes.python.worker.worker_requests",
            "agents.contract.loading:compile_library",
        ),
        sandbox: str = AUTO,
        may_read: Sequence[str] = (),
        launch: LaunchZygote | None = None,
        is_own_port: Callable[[int], bool] = lambda port: False,
    ) -> None:
        scrubbed = {"PATH": os.environ.get("PATH", os.defpath), "LANG": "C.UTF-8"}
        self._settings = ZygoteSettings(environ or scrubbed, preload, sandbox, _PROCESSES_OF_ALL, may_read)
        self._launch = launch
        self.is_own_port = is_own_port
        self._on_output = on_output
        self.loop = asyncio.get_running_loop()
        self._zygote: ZygoteClient | None = None
        self.zygote_pid = 0
        """The zygote's process id; 0 while there is none."""
        self._pools: dict[str, WorkerPool] = {}
        self._earlier_requests = 0  # of pools that are gone
        self._counter: asyncio.TimerHandle | None = None
        self._zygotes_started = 0
        self._failures = 0
        self._closing = False
        self._ending: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Start the zygote and wait until it can fork; call it from the main thread.

        Without this, the first request starts it. Raises WorkerStartError.
        """
        await self.zygote().ready()

    def pool(
        self,
        key: str,
        plan: PoolConfig,
        quota: WorkerQuota | None = None,
        encoded: bytes = b"",
        hooks: PoolHooks = PoolHooks(),  # noqa: B008 - it cannot be changed
    ) -> WorkerPool:
        """The pool of ``key``; when it has another plan, its workers are replaced by ones of this plan.

        ``quota`` counts the workers of a new pool together with those of others; ``encoded`` is the plan's,
        for callers that must not look at the disk.
        """
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = WorkerPool(key, plan, self, quota, encoded, hooks)
        elif pool.plan != plan:
            pool.retire(plan, encoded)
        return pool

    async def remove(self, key: str) -> None:
        """End the workers of ``key`` and forget it."""
        pool = self._pools.get(key)
        if pool is not None:
            self.forget(key)
            await pool.close()

    def forget(self, key: str) -> None:
        """Drop the pool of ``key``, which has no workers and no requests."""
        pool = self._pools.pop(key)
        self._earlier_requests += pool.stats()["requests"]
        pool.leave()

    async def close(self) -> None:
        """End every worker and the zygote."""
        self._closing = True
        await asyncio.gather(*(pool.close() for pool in self._pools.values()))
        self._pools.clear()
        if self._counter is not None:
            self._counter.cancel()
        if self._zygote is not None:
            self._zygote.end()
        while self._ending:
            await asyncio.gather(*self._ending)

    def sandbox_report(self) -> dict[str, Any]:
        """``{kind, detail, …}``: what shuts workers in here, for people; kind "unknown" before the start."""
        report = self._zygote.report if self._zygote is not None else {}
        return report or {"kind": "unknown", "detail": "no worker was started yet"}

    def stats(self) -> dict[str, Any]:
        """``{zygote_pid, zygotes_started, workers, requests, pools: {key: pool's stats}}``."""
        pools = {key: pool.stats() for key, pool in self._pools.items()}
        return {
            "zygote_pid": self.zygote_pid,
            "zygotes_started": self._zygotes_started,
            "workers": sum(stats["workers"] for stats in pools.values()),
            "requests": self._earlier_requests + sum(stats["requests"] for stats in pools.values()),
            "pools": pools,
        }

    # told by the pools

    def zygote(self) -> ZygoteClient:
        """The living zygote, started when there is none. Raises WorkerStartError when it keeps ending."""
        if self._counter is None:  # a worker is about to be started
            self._counter = self.loop.call_later(_COUNT, self._count)
        if self._zygote is None:
            if self._closing or self._failures >= _ATTEMPTS:
                self._failures = 0  # the next request tries again
                raise WorkerStartError(
                    "The process that starts workers keeps ending", do="see the log, then try again"
                )
            link = ZygoteClient(self._settings, lambda: self._zygote_ended(link), self._launch)
            self._zygote = link
            self._zygotes_started += 1
            try:
                link.start()
                self.zygote_pid = link.pid
            except BaseException:  # whatever it was: one that did not start cannot be ended either
                self._zygote = None
                raise
            return link
        return self._zygote

    def printed(self, key: str, pid: int, line: str) -> None:
        """A worker wrote a line."""
        if self._on_output is not None:
            self._on_output(key, pid, line)

    def _count(self) -> None:
        """Agent code may multiply after its call, too; so long as there are workers, they are counted."""
        working = [pool.enforce_process_limit() for pool in self._pools.values()]
        self._counter = self.loop.call_later(_COUNT, self._count) if any(working) else None

    def _zygote_ended(self, link: ZygoteClient) -> None:
        self._zygote, self.zygote_pid = None, 0
        self._failures = 0 if link.report else self._failures + 1
        task = self.loop.create_task(link.wait())
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
