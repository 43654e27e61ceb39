"""Running an agent: one call in a worker, whatever the agent does to it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

import msgspec

from agents.errors import AgentError, CallTimeout
from agents.listed import Agent
from agents.worker.pool import WorkerPool

log = logging.getLogger(__name__)

OnCallback = Callable[[str, dict[str, Any]], Awaitable[Any]]


class Ran(msgspec.Struct, frozen=True):
    """What an agent call came to. ``result`` is the agent's text, or what went wrong."""

    ok: bool
    result: str
    slush: dict[str, Any] | None
    seconds: float


class Limits(Protocol):
    """What one call may take, read at each call."""

    call_seconds: float


class Crews(msgspec.Struct, frozen=True):
    """The workers of one workspace, by what runs in them.

    Agents that may change structure have a crew of their own, so that no other agent's code ever
    shares a process with them; agents that keep state in memory share one single worker.
    """

    everyday: WorkerPool
    trusted: WorkerPool
    single: WorkerPool

    def of(self, agent: Agent) -> WorkerPool:
        """Where this agent's code runs."""
        if agent.trusted:
            return self.trusted
        return self.single if agent.one_worker else self.everyday

    def go_by(self, standing: Callable[[], Mapping[str, Any]]) -> None:
        """Has every request carry what ``standing`` gives at that moment."""
        for crew in (self.everyday, self.trusted, self.single):
            crew.request_context = standing

    def retire(self) -> None:
        """Has every worker replaced, once it is done with what it has."""
        for crew in (self.everyday, self.trusted, self.single):
            crew.retire()


class AgentRunner:
    """Calls agents of one workspace."""

    def __init__(self, crews: Crews, limits: Limits) -> None:
        self._crews = crews
        self._limits = limits

    async def run(
        self,
        agent: Agent,
        arguments: dict[str, Any],
        *,
        user_guid: str,
        slush: dict[str, Any] | None = None,
        on_callback: OnCallback | None = None,
    ) -> Ran:
        """One ``perform``. Raises nothing but cancellation: a failing agent costs one result."""
        started = time.monotonic()
        limit = self._limits.call_seconds
        try:
            found = await self._crews.of(agent).request(
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
            )
        except CallTimeout:
            text = (
                f"{agent.name} was stopped after {limit:g} s. Ask again, or raise its limit (agents.timeout)."
            )
            return Ran(False, text, None, time.monotonic() - started)
        except AgentError as error:
            return Ran(False, str(error), None, time.monotonic() - started)
        return Ran(True, found["result"], found.get("data_slush"), time.monotonic() - started)

    async def system_contexts(self, agents: Iterable[Agent], user_guid: str) -> list[str]:
        """What agents add to the system text, in the roster's order; a failing one adds nothing."""
        speaking = [agent for agent in agents if agent.has_context]
        if not speaking:
            return []
        by_crew: dict[WorkerPool, list[Agent]] = {}
        for agent in speaking:
            by_crew.setdefault(self._crews.of(agent), []).append(agent)
        answers = await asyncio.gather(
            *(self._contexts(crew, group, user_guid) for crew, group in by_crew.items())
        )
        found = {name: text for answer in answers for name, text in answer.items()}
        return [text for agent in speaking if (text := found.get(agent.name))]

    async def _contexts(self, crew: WorkerPool, agents: list[Agent], user_guid: str) -> dict[str, str]:
        body = {
            "agents": [{"file": agent.reference(), "name": agent.name} for agent in agents],
            "user_guid": user_guid,
        }
        try:
            answer: dict[str, str] = await crew.request(
                "system_context", body, timeout=self._limits.call_seconds
            )
        except AgentError as error:
            log.warning("system_context: %s", error)
            return {}
        return answer
