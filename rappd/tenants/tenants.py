"""All tenants: the host brainstem, and twins, each opened at its first use."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Protocol

from rappd.daemon.home import Home
from rappd.notices.notices import failed_later
from rappd.tenants.autostart import AutostartRegistry
from rappd.tenants.tenant import Tenant
from twins.errors import NoSuchTwinError, TwinConflictError
from twins.lifecycle.lookup import find_active
from twins.lifecycle.state_index import is_body
from twins.workspace.listing import Presence
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout, Workspace

log = logging.getLogger(__name__)

MOST_OPEN = 64
"""Twins kept open without a port; the one that rested longest is closed first."""

MOST_PATIENCE = 600.0
"""Seconds that a twin which shall sleep, or be set aside, may go on answering."""

_LOOK_SECONDS = 0.05

Make = Callable[[str, str, Workspace], Tenant]
"""(key, name, workspace) -> its tenant."""

Failed = Callable[[str, str], None]
"""(what was put off and then failed, what to do): reports it to the caller."""


class TwinListeners(Protocol):
    """Opens and closes the ports of twins."""

    async def open(self, tenant: Tenant, wanted: int | None) -> int:
        """Listens for the tenant and returns the port, ``wanted`` if it is free. Raises ``ConflictError``."""
        ...

    async def close(self, key: str) -> None:
        """Stops listening for it."""
        ...

    def hold(self, key: str) -> None:
        """Keeps its port from others until it is opened again, or let go."""
        ...

    def let_go(self, key: str) -> None:
        """Holds its port no longer."""
        ...

    async def close_all(self) -> None:
        """Stops listening for all of them; they are booted again at the next start."""
        ...


class Tenants:
    """Opens, boots and stops twins. All calls come from the event loop."""

    def __init__(
        self,
        home: Home,
        host: Tenant,
        make: Make,
        *,
        failed: Failed,
        listeners: TwinListeners,
        serves: bool = True,
    ) -> None:
        """``serves``: requests of others come, too; False in a command without a daemon."""
        self.host = host
        self.layout = TwinLayout(home.root)
        self.listeners = listeners
        self._serves = serves
        self._wakes = AutostartRegistry(home)
        self._make = make
        self._failed = failed
        self._open: dict[str, Tenant] = {}
        self._used: dict[str, float] = {}
        self._began = time.time_ns()
        self._earlier: Counter[str] = Counter()  # requests to twins that are closed
        self._ports: dict[str, int] = {}
        self._last_ports: dict[str, int] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._opening: dict[str, asyncio.Lock] = {}  # taken before the lock of the same twin
        self._put_off: dict[tuple[str, str], asyncio.Task[None]] = {}

    async def twin(self, selector: str) -> Tenant:
        """The tenant of an active twin, opened if need be. Raises ``NoSuchTwinError``, ``TwinConflictError``."""
        tenant = self._open.get(selector)  # a whole key, mostly
        if tenant is None:
            twin = await asyncio.to_thread(find_active, self.layout, selector)
            tenant = self._open.get(twin.key) or await self._open_twin(twin)
        self._used[tenant.name] = time.monotonic()
        return tenant

    async def of_workspace(self, name: str) -> Tenant:
        """The tenant of that name in records: the host, or a twin by its key. Raises as ``twin`` does."""
        return self.host if name == self.host.name else await self.twin(name)

    async def boot(self, selector: str) -> int:
        """Gives a twin a port and returns it; one that is running keeps its own.

        Where none serves, it gets one at the next start; returns the one that it had, or 0.
        """
        if not self._serves:
            twin = await asyncio.to_thread(find_active, self.layout, selector)
            port = self._last_ports.setdefault(twin.key, 0)
            await asyncio.to_thread(self._wakes.remember, twin.key, port)
            return port
        while True:
            tenant = await self.twin(selector)
            async with self._lock(tenant.name):
                if self._open.get(tenant.name) is not tenant:
                    continue  # it was stopped while we waited
                if tenant.name in self._ports:
                    return self._ports[tenant.name]
                port = await self.listeners.open(tenant, self._last_ports.get(tenant.name))
                try:
                    await asyncio.to_thread(self._wakes.remember, tenant.name, port)
                except OSError:  # it would be asleep after a restart: it is not running
                    await self.listeners.close(tenant.name)
                    raise
                self._ports[tenant.name] = self._last_ports[tenant.name] = port
                log.info("%s is running on port %d", tenant.title, port)
                return port

    async def stop(self, key: str, *, hold_port: bool = False) -> None:
        """Ends a twin's port, workers and all it keeps in memory.

        Nothing to end is no error. A port that is held is the twin's with its next boot; who comes to it
        waits. Its former holder releases it.
        """
        # The caller may be one of these workers, and is cancelled by its own end.
        await asyncio.shield(self._stop(key, hold_port))

    def let_go_port(self, key: str) -> None:
        """A port that was held, and that the twin has not taken again, is anybody's."""
        self.listeners.let_go(key)

    async def let_sleep(self, key: str) -> bool:
        """Stops a twin once its active requests are answered. Returns True when it is stopped already."""
        tenant = self._open.get(key)
        if tenant is None or not tenant.active_requests:
            await self.stop(key)
            return True
        self.once_answered(key, "the stop", partial(self._stop_unless_stopped, tenant))
        return False

    def is_answering(self, key: str) -> bool:
        """True while a request to a twin is active, perhaps of the very agent that asks."""
        tenant = self._open.get(key)
        return tenant is not None and tenant.active_requests > 0

    def activity(self, key: str) -> str:
        """A mark of a twin that is another one after each request to it, also of a later daemon; "" where none serves."""
        if not self._serves:
            return ""
        tenant = self._open.get(key)
        return f"{self._began:x}.{self._earlier[key] + (tenant.requests_begun if tenant else 0)}"

    def once_answered(self, key: str, what: str, work: Callable[[], Awaitable[object]]) -> None:
        """Runs ``work``, a twin's ``what``, once its active requests are answered; only once for several requests.

        Nobody waits for it any more, so a failure is told afterwards.
        """
        if (key, what) not in self._put_off:
            task = asyncio.ensure_future(self._when_answered(key, what, work))
            self._put_off[key, what] = task
            task.add_done_callback(lambda _: self._put_off.pop((key, what), None))

    @asynccontextmanager
    async def apart(self, key: str) -> AsyncIterator[None]:
        """Keeps a twin closed: requests to it wait until the block is left."""
        async with self._opening.setdefault(key, asyncio.Lock()):
            yield

    @asynccontextmanager
    async def resting(self, key: str) -> AsyncIterator[None]:
        """Nothing of a twin runs meanwhile; one that was running is started again, on its port."""
        was_running = key in self._ports
        try:
            async with self.apart(key):
                if (
                    was_running or key in self._open
                ):  # one that only waits for the next start still does afterwards
                    await self.stop(key, hold_port=was_running)
                yield
        finally:
            if was_running:
                try:
                    await self.boot(key)
                finally:
                    self.let_go_port(key)

    def renamed(self, key: str, name: str) -> None:
        """Tells what people call a twin from now on."""
        if key in self._open:
            self._open[key].publish(name)

    def presence(self, key: str) -> Presence:
        """Returns the present state of a twin, with its last port also while it is stopped."""
        return Presence(
            running=key in self._ports, port=self._ports.get(key) or self._last_ports.get(key) or None
        )

    def running(self) -> dict[str, int]:
        """Ports of the twins that have one, by key."""
        return dict(self._ports)

    def all(self) -> list[Tenant]:
        """The host and every twin that is open."""
        return [self.host, *self._open.values()]

    def opened(self, key: str) -> Tenant | None:
        """The tenant of a twin that is open already."""
        return self._open.get(key)

    async def recall(self) -> dict[str, int]:
        """Learns the ports of the twins that were running when the daemon last ended, and returns them."""
        self._last_ports = await asyncio.to_thread(self._wakes.all)
        return dict(self._last_ports)

    async def wake_remembered(self) -> None:
        """Boots the twins that were running when the daemon last ended."""
        for key in await self.recall():
            try:
                await self.boot(key)
            except (NoSuchTwinError, TwinConflictError) as problem:  # gone, or set aside
                log.info("the twin %s stays stopped: %s", key, problem)
                await asyncio.to_thread(self._wakes.forget, key)
            except Exception:
                log.exception("the twin %s could not be booted", key)

    async def _when_answered(self, key: str, what: str, work: Callable[[], Awaitable[object]]) -> None:
        until = time.monotonic() + MOST_PATIENCE
        name = self._open[key].title if key in self._open else key
        while self.is_answering(key) and time.monotonic() < until:  # noqa: ASYNC110 - it counts and tells nobody
            await asyncio.sleep(_LOOK_SECONDS)
        try:
            await work()
        except Exception as error:
            log.exception("%s of the twin %s, put off until it had answered, failed", what, key)
            self._failed(*failed_later(what, name, error))

    async def _stop_unless_stopped(self, tenant: Tenant) -> None:
        if (
            self._open.get(tenant.name) is tenant
        ):  # else somebody did it meanwhile, and may have woken it again
            await self.stop(tenant.name)

    async def _stop(self, key: str, hold_port: bool) -> None:
        async with self._lock(key):
            if self._ports.pop(key, None) is not None:
                if hold_port:
                    self.listeners.hold(key)
                await self.listeners.close(key)
            await asyncio.to_thread(self._wakes.forget, key)
            await self._close(key)

    async def _open_twin(self, twin: Twin) -> Tenant:
        async with self.apart(twin.key), self._lock(twin.key):
            if (known := self._open.get(twin.key)) is not None:
                return known
            if not await asyncio.to_thread(is_body, twin.workspace.root):  # it moved since it was found
                twin = await asyncio.to_thread(find_active, self.layout, twin.key)
            await asyncio.to_thread(twin.workspace.create)
            tenant = self._make(twin.key, twin.name, twin.workspace)
            tenant.active_requests += 1  # not closed before its caller has it
            self._open[twin.key] = tenant
            self._used[twin.key] = time.monotonic()
            try:
                await tenant.start()
            except BaseException:  # else all who speak to it later would wait for this start
                await self._close(twin.key)
                raise
        try:
            await self._close_longest_resting()
        finally:
            tenant.active_requests -= 1
        return tenant

    async def _close_longest_resting(self) -> None:
        without_port = [key for key in self._open if key not in self._ports]
        resting = [key for key in without_port if not self._open[key].active_requests]
        if len(without_port) <= MOST_OPEN or not resting:
            return
        longest = min(resting, key=lambda key: self._used[key])
        used = self._used[longest]
        # Locked: a new tenant must get new workers, not those that are ending.
        async with self._lock(longest):
            tenant = self._open.get(longest)
            if (
                tenant
                and not tenant.active_requests
                and longest not in self._ports
                and self._used[longest] == used
            ):
                await self._close(longest)

    async def _close(self, key: str) -> None:
        tenant = self._open.pop(key, None)
        self._used.pop(key, None)
        if tenant is not None:
            await tenant.close()
            self._earlier[key] += tenant.requests_begun

    def _lock(self, key: str) -> asyncio.Lock:
        return self._locks.setdefault(key, asyncio.Lock())
