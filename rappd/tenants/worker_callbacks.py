"""Requests of worker code to the daemon, all of them logged.

A model turn, metered; for trusted agents, named structural operations; for a buddy's own agent, the buddy's
actions.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from agents.contract.agent import Agent
from agents.contract.read_only_actions import OPERATIONS
from agents.errors import CallbackDeniedError
from agents.providers.provider import Completion, ModelRequest
from agents.providers.selection import ProviderSelector
from agents.runtimes.python.pools.runner import OnCallback
from agents.storage.safe_fs import in_file_pool
from envelopes.errors import ReportableError
from rappd.errors import disk_problem
from rappd.settings.load import Settings
from rappd.tenants.tenant_context import TenantContext

log = logging.getLogger(__name__)

Reach = Callable[[str, dict[str, Any]], Awaitable[Any]]
Used = Callable[[Completion, float], None]


class CallbackRights(msgspec.Struct):
    """The rights of one call of an agent to ask the daemon; ``reach`` asks other machines and sets timers, within its turn.

    ``used`` counts every model call, and is told how long it took; ``model_call`` may refuse one. ``looks``: operations
    that change nothing are allowed outside an operator's turn.
    """

    agent: Agent
    operator: bool
    looks: bool
    used: Used
    reach: Reach | None
    model_call: Callable[[], Awaitable[None]] | None = None
    model_calls: int = 0


class WorkerCallbackHandler:
    """Answers callbacks of one tenant's workers."""

    def __init__(self, tenant: TenantContext, thinking: ProviderSelector, settings: Settings) -> None:
        self._thinking = thinking
        self._tenant = tenant
        self._model_calls = settings.number("agents.model_calls")

    def apply(self, settings: Settings) -> None:
        """Takes changed live settings over."""
        self._model_calls = settings.number("agents.model_calls")

    async def answer(self, rights: CallbackRights, operation: str, arguments: dict[str, Any]) -> Any:
        """Answers a callback of one call of an agent."""
        agent = rights.agent
        if operation == "llm":
            rights.model_calls += 1
            if rights.model_calls > self._model_calls:
                raise CallbackDeniedError(
                    f"{agent.name} used its {self._model_calls} model calls.",
                    do="Raise agents.model_calls.",
                )
            if rights.model_call is not None:
                await rights.model_call()
            return await self._model_turn(agent.name, arguments, rights.used)
        if operation == "llm_status":
            return self._status()
        if operation == "host":
            looks = rights.looks and str(arguments.get("operation", "")) in OPERATIONS
            return await self._host(agent, rights.operator or looks, arguments, rights.reach)
        raise CallbackDeniedError(f'There is no callback "{operation[:40]}".')

    def for_service(self) -> OnCallback:
        """Services get no callbacks: they answer every caller."""

        async def answer(operation: str, arguments: dict[str, Any]) -> Any:
            raise CallbackDeniedError("Services may not ask the daemon for anything.")

        return answer

    def _status(self) -> dict[str, Any]:
        described = self._thinking.describe()
        return {
            "available": self._thinking.has_model,
            "provider": described.name,
            "model": described.model,
            "reason": "" if self._thinking.has_model else described.do,
        }

    async def _model_turn(self, name: str, arguments: dict[str, Any], used: Used) -> dict[str, Any]:
        found = arguments.get("messages")
        messages = [dict(item) for item in found if isinstance(item, dict)] if isinstance(found, list) else []
        system = "\n\n".join(
            str(item.get("content", "")) for item in messages if item.get("role") == "system"
        )
        rest = [item for item in messages if item.get("role") != "system"]

        async def prompt() -> str:
            return system

        tools = arguments.get("tools")
        request = ModelRequest(
            rest,
            tools if isinstance(tools, list) else [],
            prompt,
            model=str(arguments.get("model") or ""),
            chosen=await self._tenant.models.of_twin(self._tenant.name),
        )
        began = time.monotonic()
        completion = await self._thinking.model_turn(request)
        used(completion, time.monotonic() - began)
        log.info("%s used the model: %d tokens", name, completion.input_tokens + completion.output_tokens)
        return {
            "text": completion.text,
            "model": completion.model,
            "tool_calls": [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in completion.tool_calls
            ],
        }

    async def _host(
        self, agent: Agent, operator: bool, arguments: dict[str, Any], reach: Reach | None
    ) -> Any:
        operation = str(arguments.pop("operation", ""))
        if operation.startswith("buddy.") and await in_file_pool(self._tenant.is_of_buddies, agent):
            # Its own life and nobody else's: no more than the workspace's code could write there itself.
            return await self._perform(operation, {**arguments, "twin": self._tenant.name})
        if not agent.trusted:
            log.warning("security: %s asked for %s and is not approved", agent.file.rel, operation)
            raise CallbackDeniedError(
                f"{agent.name} may not change this machine's agents.",
                do=f"rappd agents approve {agent.file.rel}",
            )
        if operation.startswith(("peers.", "timers.")) and reach is not None:
            # No structure changes by it; what the caller may ask for there is for that part to say.
            try:
                return await reach(operation, arguments)
            except ReportableError as problem:  # the agent is told the text alone
                raise CallbackDeniedError(problem.with_advice(), do=problem.do) from problem
        if not operator:
            log.warning("security: %s asked for %s outside an operator's turn", agent.name, operation)
            raise CallbackDeniedError("Only this machine's operator can do that.", do="rappd open")
        log.info("%s: %s", agent.name, operation)
        return await self._perform(operation, arguments)

    async def _perform(self, operation: str, arguments: dict[str, Any]) -> Any:
        try:
            return await self._tenant.perform(operation, arguments)
        except ReportableError as problem:
            raise CallbackDeniedError(str(problem), do=problem.do) from problem
        except OSError as error:
            if (of_disk := disk_problem(error)) is None:
                raise
            raise CallbackDeniedError(str(of_disk), do=of_disk.do) from error
