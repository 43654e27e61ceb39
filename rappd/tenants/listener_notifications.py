"""Messages of the system (``boot``, ``listener-joined`` …), given to listeners whose payload is that one."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Protocol

from agents.contract.agent import Agent
from envelopes.payloads.form import CORE
from twins.background_tasks import BackgroundTasks

log = logging.getLogger(__name__)

_SHUTDOWN_SECONDS = 3.0
_LOOK_SECONDS = 1.0


class Receiver(Protocol):
    """A tenant, as far as it gets messages of the system."""

    @property
    def name(self) -> str: ...

    def serving(self) -> Iterable[Agent]:
        """The tenant's agents and listeners that serve now."""
        ...

    async def tell(self, listener: Agent, value: dict[str, Any]) -> None:
        """Calls a listener with a message of the system, on a thread of ``core``."""
        ...


class SystemMessages:
    """Tells listeners of starts, ends, and of each other. Who does not listen costs nothing."""

    def __init__(
        self, organism: Callable[[], str], heartbeat_seconds: Callable[[], int], *, serves: bool
    ) -> None:
        """Without ``serves`` nobody is told anything. ``heartbeat_seconds``: 0 for none."""
        self._organism, self._heartbeat_seconds, self._serves = organism, heartbeat_seconds, serves
        self._began = time.monotonic()
        self._known: dict[str, tuple[Receiver, frozenset[str]]] = {}
        self._telling = BackgroundTasks(
            lambda error: log.warning("a message of the system was not told: %s", error)
        )

    def look(self, tenant: Receiver) -> None:
        """Tells a tenant's listeners who joined and left since the last look; at the first one, that rappd started."""
        if not self._serves:
            return
        names = frozenset(one.name for one in tenant.serving() if not is_system(one))
        _, before = self._known.get(tenant.name, (tenant, None))
        self._known[tenant.name] = tenant, names
        if before is None:
            value = {"organism": self._organism(), "timestamp": _now(), "listeners": len(names)}
            self._telling.spawn(self._tell([tenant], "boot", value))
            return
        for root, found in (("listener-joined", names - before), ("listener-left", before - names)):
            for name in sorted(found):
                self._telling.spawn(self._tell([tenant], root, {"name": name, "timestamp": _now()}))

    def gone(self, tenant: Receiver) -> None:
        """A tenant was closed; when it comes back, rappd started for it."""
        self._known.pop(tenant.name, None)

    def cleared(self, workspace: str, kept_messages: int) -> None:
        """Tells the listeners of a tenant that what was kept for a conversation is gone."""
        if workspace in self._known:
            value = {"kept_messages": kept_messages, "timestamp": _now()}
            self._telling.spawn(self._tell([self._known[workspace][0]], "context-cleared", value))

    async def beat(self) -> None:
        """Sends heartbeats as long as it runs."""
        last = time.monotonic()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            every = self._heartbeat_seconds()
            if every and time.monotonic() - last >= every:
                last = time.monotonic()
                value = {"timestamp": _now(), "uptime_seconds": int(last - self._began)}
                await self._tell(self._tenants(), "heartbeat", value)

    async def shut_down(self) -> None:
        """Tells all that rappd stops; who takes long is not waited for."""
        self._telling.spawn(self._tell(self._tenants(), "shutdown", {"timestamp": _now()}))
        try:
            async with asyncio.timeout(_SHUTDOWN_SECONDS):
                await self._telling.settle()
        except TimeoutError:
            log.info("listeners that take long are not waited for")
        await self._telling.close()

    def _tenants(self) -> list[Receiver]:
        return [tenant for tenant, _ in self._known.values()]

    async def _tell(self, tenants: Iterable[Receiver], root: str, value: dict[str, Any]) -> None:
        for tenant in tenants:
            for listener in list(tenant.serving()):
                if is_system(listener) and listener.listener is not None and listener.listener.root == root:
                    await tenant.tell(listener, value)


def is_system(agent: Agent) -> bool:
    """True for a listener of messages of the system, which nobody calls and no model is offered."""
    return agent.listener is not None and agent.listener.category == CORE


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
