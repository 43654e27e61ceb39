"""Running an agent: one call in a worker, whatever the agent does to it."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol

import msgspec

from agents.contract.agent import Agent
from agents.errors import AgentError, CallTimeoutError, WorkerDiedError
from agents.workers.config import PoolConfig
from agents.workers.errors import AgentRaisedError
from agents.workers.pool import WorkerPool
from agents.workers.supervisor import WorkerSupervisor
from agents.workers.worker_quota import WorkerQuota

log = logging.getLogger(__name__)

OnCallback = Callable[[str, dict[str, Any]], Awaitable[Any]]


class AgentResult(msgspec.Struct, frozen=True):
    """The outcome of an agent call. ``result`` is the agent's text, or what went wrong and where.

    ``raised`` is the text of the exception that the agent raised, alone, as published servers give it on.
    ``interrupted``: its worker ended in the middle, so that the call may have been done, or not.
    """

    ok: bool
    result: str
    slush: dict[str, Any] | None
    seconds: float
    raised: str | None = None
    interrupted: bool = False

    @property
    def error(self) -> str:
        """The message of a failed call, as ``agent_logs`` and the model get it."""
        return self.result if self.raised is None else self.raised


class Limits(Protocol):
    """Limits of one call, read at each call."""

    call_seconds: float


EVERYDAY, TRUSTED, SINGLE = "", "trusted", "single"


class WorkerPools:
    """The worker pools of one workspace: one for each origin of code and kind of agent, made when needed.

    Files of different origin never share a process. Agents that may change structure have a pool apart
    (``TRUSTED``), and those that keep state in memory share one worker (``SINGLE``). All but the latter are
    counted together against the plan's ``max_workers``. Closing is final.
    """

    def __init__(
        self,
        supervisor: WorkerSupervisor,
        name: str,
        plan: PoolConfig,
        *,
        trusted: Callable[[PoolConfig], PoolConfig] = lambda plan: plan,
    ) -> None:
        """``trusted`` makes the plan for trusted agents of ``plan``."""
        self.request_context: Callable[[], Mapping[str, Any]] | None = None
        """Fields that every request carries, asked for each time; must not block. Set before the first request."""
        self._supervisor = supervisor
        self._name = name
        self._trusted = trusted
        self._plans = self._plans_of(plan)  # looks at the disk, and pools are made within requests
        self._quota = WorkerQuota(plan.max_workers)
        self._pools: dict[tuple[str, str], WorkerPool] = {}
        self._once = itertools.count(1)

    def of(self, agent: Agent) -> WorkerPool:
        """The pool in which this agent's code runs."""
        kind = TRUSTED if agent.trusted else SINGLE if agent.one_worker else EVERYDAY
        return self.pool(agent.code_origin or agent.origin, kind)

    def pool(self, origin: str, kind: str = EVERYDAY) -> WorkerPool:
        """The pool of one origin and kind."""
        found = self._pools.get((origin, kind))
        if found is None:
            plan, encoded = self._plans[kind]
            quota = None if kind == SINGLE else self._quota
            found = self._supervisor.pool(self._key(origin, kind), plan, quota, encoded)
            found.request_context = self.request_context
            self._pools[(origin, kind)] = found
        return found

    @contextlib.asynccontextmanager
    async def apart(self) -> AsyncIterator[WorkerPool]:
        """A pool for one file that belongs to no origin yet; its worker ends with the block."""
        origin = f"new file {next(self._once)}"
        try:
            yield self.pool(origin)
        finally:
            del self._pools[(origin, EVERYDAY)]
            await self._supervisor.remove(self._key(origin, EVERYDAY))

    async def use(self, plan: PoolConfig) -> None:
        """Go by another plan; workers of one that changed are replaced, once they are done with what they have."""
        self._plans = await asyncio.to_thread(self._plans_of, plan)
        for (_, kind), pool in self._pools.items():
            fresh, encoded = self._plans[kind]
            if pool.plan != fresh:
                pool.retire(fresh, encoded)

    def retire(self) -> None:
        """Have every worker replaced, once it is done with what it has."""
        for pool in self._pools.values():
            pool.retire()

    async def close(self) -> None:
        """End all workers with what they do."""
        for origin, kind in list(self._pools):
            await self._supervisor.remove(self._key(origin, kind))
        self._pools.clear()

    def _plans_of(self, plan: PoolConfig) -> dict[str, tuple[PoolConfig, bytes]]:
        """The plan of each kind of pool, and its encoded form."""
        single, trusted = replace(plan, one_worker=True), self._trusted(plan)
        kinds = ((EVERYDAY, plan), (SINGLE, single), (TRUSTED, trusted))
        return {kind: (one, one.encoded()) for kind, one in kinds}

    def _key(self, origin: str, kind: str) -> str:
        return ":".join(filter(None, (self._name, origin, kind)))


class AgentRunner:
    """Calls agents of one workspace."""

    def __init__(self, pools: WorkerPools, limits: Limits) -> None:
        self._pools = pools
        self._limits = limits

    async def run(
        self,
        agent: Agent,
        arguments: dict[str, Any],
        *,
        user_guid: str,
        slush: dict[str, Any] | None = None,
        on_callback: OnCallback | None = None,
        caller: Hashable | None = None,
    ) -> AgentResult:
        """One ``perform``. Raises nothing but cancellation: a failing agent costs one result.

        ``caller``: calls of equal callers and users to one agent may wait in the same worker; None: in none.
        """
        started = time.monotonic()
        limit = self._limits.call_seconds
        try:
            found = await self._pools.of(agent).request(
                "perform",
                {
                    "file": agent.reference(),
                    "name": agent.name,
                    "arguments": arguments,
                    "user_guid": user_guid,
                    "upstream_slush": slush,
                },
                timeout=limit,
                on_callback=on_callback,
                together=None if caller is None else (caller, user_guid, agent.file, agent.class_name),
            )
        except CallTimeoutError:
            text = (
                f"{agent.name} was stopped after {limit:g} s. Ask again, or raise its limit (agents.timeout)."
            )
            return AgentResult(False, text, None, time.monotonic() - started)
        except AgentRaisedError as error:
            log.warning("agent %s raised %s\n%s", agent.name, error, error.trace.rstrip())
            return AgentResult(False, str(error), None, time.monotonic() - started, error.message)
        except WorkerDiedError as error:
            return AgentResult(False, str(error), None, time.monotonic() - started, interrupted=True)
        except AgentError as error:
            return AgentResult(False, str(error), None, time.monotonic() - started)
        return AgentResult(True, found["result"], found.get("data_slush"), time.monotonic() - started)

    async def system_contexts(self, agents: Iterable[Agent], user_guid: str) -> list[str]:
        """Texts that agents add to the system text, in the registry's order; a failing one adds nothing."""
        speaking = [agent for agent in agents if agent.has_context]
        if not speaking:
            return []
        by_pool: dict[WorkerPool, list[Agent]] = {}
        for agent in speaking:
            by_pool.setdefault(self._pools.of(agent), []).append(agent)
        answers = await asyncio.gather(
            *(self._contexts(pool, group, user_guid) for pool, group in by_pool.items())
        )
        found = {name: text for answer in answers for name, text in answer.items()}
        return [text for agent in speaking if (text := found.get(agent.name))]

    async def _contexts(self, pool: WorkerPool, agents: list[Agent], user_guid: str) -> dict[str, str]:
        body = {
            "agents": [{"file": agent.reference(), "name": agent.name} for agent in agents],
            "user_guid": user_guid,
        }
        try:
            answer: dict[str, str] = await pool.request(
                "system_context", body, timeout=self._limits.call_seconds
            )
        except AgentError as error:
            log.warning("system_context: %s", error)
            return {}
        return answer
