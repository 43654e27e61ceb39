"""Running an agent: one call in a worker, whatever the agent does to it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import itertools
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import msgspec

from agents.contract.agent import Agent
from agents.contract.may_run import SHIPPED
from agents.errors import AgentError, CallbackDeniedError, CallTimeoutError, WorkerDiedError
from agents.runtimes.python.pools.answers import EmittedPayload, read_contexts, read_performed
from agents.runtimes.python.pools.config import PoolConfig
from agents.runtimes.python.pools.errors import AgentRaisedError
from agents.runtimes.python.pools.pool import PoolHooks, WorkerPool
from agents.runtimes.python.pools.supervisor import WorkerSupervisor
from agents.runtimes.python.pools.use_log import UseLog, refusal
from agents.runtimes.python.pools.worker_quota import WorkerQuota
from agents.runtimes.python.sandbox.needs import UNCONFINED, Confines, Use
from agents.runtimes.python.worker.result_text import MOST_FOLLOWED, OnPiece

log = logging.getLogger(__name__)

OnCallback = Callable[[str, dict[str, Any]], Awaitable[Any]]


class AgentResult(msgspec.Struct, frozen=True):
    """The outcome of an agent call. ``result`` is the agent's text, or what went wrong and where.

    ``raised`` is the text of the exception that the agent raised, alone, as published servers give it on.
    ``interrupted``: its worker ended in the middle, so that the call may have been done, or not.
    ``payloads`` are those of a listener, of which ``result`` is the text; ``state`` what it keeps from now on.
    """

    ok: bool
    result: str
    slush: dict[str, Any] | None
    seconds: float
    raised: str | None = None
    interrupted: bool = False
    payloads: Sequence[EmittedPayload] = ()
    state: dict[str, Any] | None = None

    def told(self, most: int) -> str:
        """The result, or the message of a failed call, as ``agent_logs`` and the model get it: shortened to ``most``."""
        return _shortened(self.result if self.ok or self.raised is None else self.raised, most)

    async def recorded(self, most: int) -> dict[str, Any]:
        """The result as the record holds it: ``{result}``, or the shortened one with ``whole: {characters, sha256}``.

        ``sha256`` is that of the whole text in UTF-8.
        """
        whole = self.result
        if len(whole) <= most:
            return {"result": whole}
        digest = await asyncio.to_thread(lambda: hashlib.sha256(whole.encode()).hexdigest())
        return {"result": _shortened(whole, most), "whole": {"characters": len(whole), "sha256": digest}}


_END_SHARE = 4
"""The end of a long result keeps one part in this many: errors and sums stand there."""


def _shortened(text: str, most: int) -> str:
    """The beginning and the end of a text, with the number of characters left out between; ``text`` up to ``most``."""
    if len(text) <= most:
        return text
    end = most // _END_SHARE
    begin = most - end
    return f"{text[:begin]}\n[… {len(text) - begin - end} characters left out …]\n{text[len(text) - end :]}"


class Limits(Protocol):
    """Limits of one call, read at each call."""

    call_seconds: float


EVERYDAY, TRUSTED, SINGLE, PROGRAM = "", "trusted", "single", "program"

Principal = Hashable
"""Names whose calls a process serves: equal for calls of one agent file and class, one caller and one user."""


class WorkerPools:
    """The worker pools of one workspace, made when needed and forgotten once their workers have ended.

    There is one pool for each origin of code, kind of agent, principal and declared needs: a process that has run a file from
    outside of the program serves no call of another agent, caller or user, since that file may have answered
    its call early, or changed the process, to see the next one's arguments. Files of the program itself share
    a pool for each kind.

    Agents that may change structure have pools apart (``TRUSTED``). Those that keep state in memory
    (``SINGLE``) have one worker for each file, which serves all callers. All but the latter are counted
    together against the plan's ``max_workers``. Closing is final.
    """

    def __init__(
        self,
        supervisor: WorkerSupervisor,
        name: str,
        plan: PoolConfig,
        *,
        trusted: Callable[[PoolConfig], PoolConfig] = lambda plan: plan,
        request_context: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """``trusted`` makes the plan for trusted agents of ``plan``; ``request_context`` as in ``PoolHooks``."""
        self._request_context = request_context
        self._supervisor = supervisor
        self._name = name
        self._trusted = trusted
        self._plans = self._plans_of(plan)  # looks at the disk, and pools are made within requests
        self._quota = WorkerQuota(plan.max_workers)
        self._pools: dict[tuple[str, str, Principal, Confines], WorkerPool] = {}
        self._once = itertools.count(1)
        self._apart = asyncio.Semaphore(plan.most_workers)

    def of(self, agent: Agent, principal: Principal) -> WorkerPool:
        """The pool in which this agent's code runs for ``principal``."""
        origin, confines = agent.code_origin or agent.origin, agent.confines
        if agent.of_the_program:
            return self._pool(origin, PROGRAM + TRUSTED if agent.trusted else PROGRAM, None, confines)
        if agent.trusted:
            return self._pool(origin, TRUSTED, principal, confines)
        if agent.one_worker:
            return self._pool(origin, SINGLE, agent.file, confines)
        return self._pool(origin, EVERYDAY, principal, confines)

    def for_principal(self, origin: str, principal: Principal, confines: Confines = UNCONFINED) -> WorkerPool:
        """The pool of other code of ``origin`` than agents, for ``principal``."""
        return self._pool(origin, EVERYDAY, principal, confines)

    def program(self) -> WorkerPool:
        """The pool in which ordinary files of the program run."""
        return self._pool(SHIPPED, PROGRAM, None)

    @contextlib.asynccontextmanager
    async def apart(self, confines: Confines = UNCONFINED) -> AsyncIterator[WorkerPool]:
        """A pool for one file with these confines; its worker ends with the block.

        At most ``max_workers`` are open at a time, beside those of calls. Waiting for that is no part of a
        request's time.
        """
        async with self._apart:
            origin = f"file {next(self._once)}"
            try:
                yield self._pool(origin, EVERYDAY, None, confines, apart=True)
            finally:
                pool = self._pools.pop((origin, EVERYDAY, None, confines), None)
                if pool is not None:  # else all were closed meanwhile
                    await self._supervisor.remove(pool.key)

    async def use(self, plan: PoolConfig) -> None:
        """Go by another plan; workers of one that changed are replaced, once they are done with what they have."""
        self._plans = await asyncio.to_thread(self._plans_of, plan)
        for (_, kind, _, confines), pool in self._pools.items():
            fresh, encoded = self._plan(kind, confines)
            if pool.plan != fresh:
                pool.retire(fresh, encoded)

    def retire(self) -> None:
        """Have every worker replaced, once it is done with what it has."""
        for pool in self._pools.values():
            pool.retire()

    async def close(self) -> None:
        """End all workers with what they do."""
        pools = list(self._pools.values())
        self._pools.clear()
        for pool in pools:
            await self._supervisor.remove(pool.key)

    def _pool(
        self,
        origin: str,
        kind: str,
        principal: Principal,
        confines: Confines = UNCONFINED,
        *,
        apart: bool = False,
    ) -> WorkerPool:
        where = (origin, kind, principal, confines)
        found = self._pools.get(where)
        if found is None:
            plan, encoded = self._plan(kind, confines)
            quota = None if kind == SINGLE or apart else self._quota
            key = self._key(origin, kind)
            if principal is not None or confines != UNCONFINED:
                key = f"{key} #{next(self._once)}"
            hooks = PoolHooks(self._request_context)
            if principal is not None:
                hooks = hooks._replace(on_unused=lambda: self._forget(where))
            found = self._supervisor.pool(key, plan, quota, encoded, hooks)
            self._pools[where] = found
        return found

    def _plan(self, kind: str, confines: Confines) -> tuple[PoolConfig, bytes]:
        """The plan of a kind of pool for code with these confines, and its encoded form."""
        plan, encoded = self._plans[kind]
        if confines == UNCONFINED:
            return plan, encoded
        plan = plan.confined(confines)
        return plan, plan.encoded(self._resolve)

    def _forget(self, where: tuple[str, str, Principal, Confines]) -> None:
        found = self._pools.pop(where, None)
        if found is not None:
            self._supervisor.forget(found.key)

    def _plans_of(self, plan: PoolConfig) -> dict[str, tuple[PoolConfig, bytes]]:
        """The plan of each kind of pool, and its encoded form."""
        trusted = self._trusted(plan)
        kinds = {
            EVERYDAY: plan,
            TRUSTED: trusted,
            SINGLE: replace(plan, one_worker=True),
            PROGRAM: _of_the_program(plan),
            PROGRAM + TRUSTED: _of_the_program(trusted),
        }
        self._resolve = resolve = cache(Path.resolve)  # they have their paths in common
        return {kind: (one, one.encoded(resolve)) for kind, one in kinds.items()}

    def _key(self, origin: str, kind: str) -> str:
        return ":".join(filter(None, (self._name, origin, kind)))


def _of_the_program(plan: PoolConfig) -> PoolConfig:
    """The same for files of the program: they find no module of the workspace, where agents can write some."""
    return replace(plan, settings={**plan.settings, "deps_dir": None, "neighbours": False})


class AgentRunner:
    """Calls agents of one workspace."""

    def __init__(self, pools: WorkerPools, limits: Limits, uses: UseLog | None = None) -> None:
        self._pools = pools
        self._limits = limits
        self.uses = uses or UseLog()

    async def run(
        self,
        agent: Agent,
        arguments: dict[str, Any],
        *,
        user_guid: str,
        slush: dict[str, Any] | None = None,
        on_callback: OnCallback | None = None,
        caller: Hashable,
        on_piece: OnPiece | None = None,
        state: dict[str, Any] | None = None,
    ) -> AgentResult:
        """One ``perform``. Raises nothing but cancellation: a failing agent costs one result.

        ``on_piece`` is told what a perform yields, as it comes. ``state`` is what a stateful listener kept. A call that
        asks for more than its agent's declared needs fails with what was refused, whatever it answers.

        Calls of equal ``caller`` and user to one agent may share a process.
        """
        uses: list[Use] = []
        body = {
            "file": agent.reference,
            "name": agent.own_name or agent.name,
            "arguments": arguments,
            "user_guid": user_guid,
            "upstream_slush": slush,
            "follow": on_piece is not None,
            **({"state": state} if state is not None else {}),
        }
        on_callback = _following(on_piece, on_callback) if on_piece else on_callback
        ran = await self._perform(agent, _principal(agent, caller, user_guid), body, on_callback, uses)
        if agent.needs is None or not uses:
            return ran
        self.uses.note(agent.origin, agent.file.rel, agent.sha256, uses)
        if not (refused := refusal(agent.name, uses, f"rappd agents needs {agent.name}")):
            return ran
        log.warning("security: %s", refused)
        text = refused if ran.ok else f"{ran.result} ({refused})"
        return AgentResult(False, text, None, ran.seconds, interrupted=ran.interrupted)

    async def _perform(
        self,
        agent: Agent,
        principal: Principal,
        body: dict[str, Any],
        on_callback: OnCallback | None,
        uses: list[Use],
    ) -> AgentResult:
        """Runs ``perform`` once, refusals and all, and adds what it asked for to ``uses``."""
        started = time.monotonic()
        limit = self._limits.call_seconds
        try:
            result, found, payloads, after, worker_uses = await self._pools.of(agent, principal).request(
                "perform",
                body,
                timeout=limit,
                on_callback=on_callback,
                together=principal,
                read=read_performed,
                on_use=lambda host, given: uses.append(("hosts", host, given)),
            )
            uses += worker_uses
        except CallTimeoutError:
            text = (
                f"{agent.name} was stopped after {limit:g} s. Ask again, or raise its limit (agents.timeout)."
            )
            return AgentResult(False, text, None, time.monotonic() - started)
        except AgentRaisedError as error:
            log.warning("agent %s raised %s\n%s", agent.name, error, error.trace.rstrip())
            uses += error.uses
            return AgentResult(False, str(error), None, time.monotonic() - started, error.message)
        except WorkerDiedError as error:
            return AgentResult(False, str(error), None, time.monotonic() - started, interrupted=True)
        except AgentError as error:
            return AgentResult(False, str(error), None, time.monotonic() - started)
        return AgentResult(True, result, found, time.monotonic() - started, payloads=payloads, state=after)

    async def system_contexts(self, agents: Iterable[Agent], user_guid: str, caller: Hashable) -> list[str]:
        """Texts that agents add to the system text, in the registry's order; a failing one adds nothing."""
        speaking = [agent for agent in agents if agent.has_context]
        if not speaking:
            return []
        by_pool: dict[WorkerPool, list[Agent]] = {}
        for agent in speaking:
            principal = _principal(agent, caller, user_guid)
            by_pool.setdefault(self._pools.of(agent, principal), []).append(agent)
        answers = await asyncio.gather(
            *(self._contexts(pool, group, user_guid) for pool, group in by_pool.items())
        )
        found = {name: text for answer in answers for name, text in answer.items()}
        return [text for agent in speaking if (text := found.get(agent.name))]

    async def _contexts(self, pool: WorkerPool, agents: list[Agent], user_guid: str) -> dict[str, str]:
        """Texts by agent, of these agents alone: a worker may name others."""
        body = {
            "agents": [{"file": agent.reference, "name": agent.name} for agent in agents],
            "user_guid": user_guid,
        }
        try:
            answer = await pool.request(
                "system_context", body, timeout=self._limits.call_seconds, read=read_contexts
            )
        except AgentError as error:
            log.warning("system_context: %s", error)
            return {}
        return {agent.name: text for agent in agents if (text := answer.get(agent.name))}


def _following(on_piece: OnPiece, on_callback: OnCallback | None) -> OnCallback:
    """Callbacks of which ``piece`` goes to ``on_piece``, within bounds, and all others to ``on_callback``."""
    left = MOST_FOLLOWED

    async def answer(operation: str, arguments: dict[str, Any]) -> Any:
        nonlocal left
        if operation == "piece":
            text = arguments.get("text")
            if isinstance(text, str) and text and left > 0:
                on_piece(text[:left])
                left -= len(text)
            return None
        if on_callback is None:
            raise CallbackDeniedError(f'There is no callback "{operation[:40]}".')
        return await on_callback(operation, arguments)

    return answer


def _principal(agent: Agent, caller: Hashable, user_guid: str) -> Principal:
    return (caller, user_guid, agent.file, agent.class_name)
