"""The source "nearby": this machine is announced on its networks, and others' announcements are heard.

By multicast DNS, ``_rappd._tcp.local.``, and as an A2A agent ``_a2a._tcp.local.``. It starts in the background and never fails the daemon: what is
wrong is told in ``trouble``, and tried again quietly.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

import msgspec

from neighborhoods.discovery.address_text import ANY_HOSTS
from neighborhoods.discovery.announcement import Announcement, read
from neighborhoods.discovery.discovered_nodes import DiscoveredNodes
from neighborhoods.discovery.interfaces import (
    Interface,
    announced_addresses,
    interfaces,
    multicast_trouble,
    slept,
)

if TYPE_CHECKING:
    from neighborhoods.discovery.mdns import Found, MdnsClient

_log = logging.getLogger(__name__)


class MdnsService:
    """Announces this machine and keeps in ``discovered`` which others it heard of. ``trouble`` is "" while all is well.

    ``port`` 0 looks without announcing. ``hosts`` are those at which this machine listens: of its addresses only
    what they take is announced, and nothing where they take none. ``a2a`` tells if A2A is answered. ``loopback``
    keeps to 127.0.0.1: for trials on one machine. Changed addresses, links and a machine's sleep are noticed within
    ``poll`` seconds; trouble is tried again every ``retry`` seconds. Who was not heard for ``silent`` seconds (longer
    than its address records live, 120) is asked after, and gone without an answer.
    """

    def __init__(
        self,
        discovered: DiscoveredNodes,
        *,
        name: str,
        fingerprint: str,
        port: int,
        hosts: Collection[str] = ANY_HOSTS,
        loopback: bool = False,
        a2a: Callable[[], bool] = lambda: False,
        poll: float = 3.0,
        retry: float = 30.0,
        silent: float = 130.0,
    ) -> None:
        self.discovered = discovered
        self.trouble = ""
        self._wanted = Announcement(name, fingerprint, port)
        self._a2a = a2a
        self._hosts = hosts
        self._loopback, self._poll, self._retry = loopback, poll, retry
        self._silent = int(silent * 1_000_000)
        self._air: MdnsClient | None = None
        self._interfaces: tuple[Interface, ...] = ()
        self._announced: Announcement | None = None
        self._announced_at = self._tried_at = -retry
        self._heard_itself = False
        self._again = 0
        self._slept = slept()
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def instance(self) -> str:
        """The DNS name under which this machine is announced now; "" when it is not."""
        return self._air.instance if self._air else ""

    def start(self) -> None:
        """Begins in the background; returns at once."""
        self._task = asyncio.get_running_loop().create_task(self._keep(), name="nearby")

    def announce(
        self, *, name: str | None = None, port: int | None = None, hosts: Collection[str] | None = None
    ) -> None:
        """Announces another name, another port, or addresses of other hosts from now on."""
        self._hosts = self._hosts if hosts is None else hosts
        wanted = self._wanted
        self._wanted = Announcement(
            wanted.name if name is None else name, wanted.fingerprint, wanted.port if port is None else port
        )
        self._wake.set()

    async def look_again(self) -> None:
        """Asks the network anew who is there; answers come as sightings."""
        if self._air is not None:
            await self._air.look_again()

    async def close(self) -> None:
        """Says goodbye and stops, within a second."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        if self._air is not None:
            air, self._air = self._air, None
            await air.close()

    def on_found(self, source: str, found: Found) -> None:
        """An announcement was heard: taken in when it is a machine's, and not this one's."""
        if source == self.instance:
            self._heard_itself = True
            return
        sighting = read(
            found.properties,
            found.port,
            found.parsed_scoped_addresses(),
            at=time.time_ns() // 1000,
            loopback=self._loopback,
        )
        if sighting is None:
            self.discovered.gone(source)
        elif sighting.fingerprint != self._wanted.fingerprint:
            self.discovered.saw(source, sighting)

    def on_heard(self, source: str) -> None:
        """An announcement was heard once more."""
        if source == self.instance:
            self._heard_itself = True
        else:
            self.discovered.heard(source, time.time_ns() // 1000)

    def on_gone(self, source: str) -> None:
        """An announcement was withdrawn."""
        self.discovered.gone(source)

    async def _keep(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self._look_after()
            except Exception as error:  # noqa: BLE001 - whatever zeroconf runs into, the daemon goes on without it
                _log.info("Announcing nearby failed: %s", error, exc_info=error)
                self.trouble = _message_of(error)
                await self._leave()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await self._wake.wait()

    async def _look_after(self) -> None:
        now, found = time.monotonic(), await asyncio.to_thread(self._look)
        changed = found != self._interfaces
        slept_before, self._slept = self._slept, slept()
        if not found:
            self._interfaces, self.trouble = found, multicast_trouble(found)
            await self._leave()
        elif self._air is None:
            if changed or now - self._tried_at >= self._retry:
                self._tried_at, self._interfaces = now, found
                await self._open(found)
        else:
            if changed or self._again:
                await self._follow(self._air, found, changed, now)
            woke = self._slept - slept_before > 2
            if woke:
                await self._air.look_again()
            unheard = self._unheard(now)
            if unheard:
                await self._air.follow(found, None)
            if woke or unheard or self._announced != self._to_say():
                await self._say(self._air, now)
        await self._judge(found)
        self._ask_after_silent_ones()

    def _look(self) -> tuple[Interface, ...]:
        return interfaces(loopback=self._loopback)

    async def _open(self, found: tuple[Interface, ...]) -> None:
        # In a thread: reading the library's modules takes a tenth of a second or more.
        module = await asyncio.to_thread(_multicast)
        self._air = module(self, found, self._hosts)
        self._again = 2
        await self._say(self._air, time.monotonic())

    async def _follow(self, air: MdnsClient, found: tuple[Interface, ...], changed: bool, now: float) -> None:
        # Twice more: an IPv6 address cannot be used for its first second or two, and an address that was
        # heard less than a second before another took its place stays with others until they hear that
        # again (RFC 6762 section 10.2).
        self._again = 2 if changed else self._again - 1
        self._interfaces = found
        if not changed:
            await air.follow(found, self._announced)
            return
        self._announced_at, self._heard_itself = now, False
        self._announced = self._to_say() if self._announced is not None else None
        await air.follow(found, self._announced)
        await air.look_again()

    async def _say(self, air: MdnsClient, now: float) -> None:
        wanted = self._to_say()
        self._announced_at, self._heard_itself = now, False
        await air.announce(wanted)
        self._announced, self._announced_at = wanted, time.monotonic()

    def _to_say(self) -> Announcement:
        """The announcement for the links at hand: no port where none of their addresses is listened on."""
        wanted = self._wanted
        if announced_addresses(self._interfaces, self._hosts):
            return msgspec.structs.replace(wanted, a2a=bool(wanted.port) and self._a2a())
        return Announcement(wanted.name, wanted.fingerprint, 0)

    def _unheard(self, now: float) -> bool:
        return self._deaf(now) and now - self._announced_at >= self._retry

    def _deaf(self, now: float) -> bool:
        speaks = self._air is not None and bool(self._air.instance)
        return speaks and not self._heard_itself and now - self._announced_at >= 3

    async def _judge(self, found: tuple[Interface, ...]) -> None:
        if self._air is None:
            return
        trouble = await asyncio.to_thread(multicast_trouble, found)
        if not trouble and self._deaf(time.monotonic()):
            trouble = "Multicast is blocked: this machine does not even hear its own announcement."
        if not trouble and self._wanted.port and not announced_addresses(found, self._hosts):
            trouble = f"Not announced: this machine listens at {', '.join(self._hosts)}, and has no such address here."
        self.trouble = trouble

    def _ask_after_silent_ones(self) -> None:
        # A machine that was cut off never says goodbye, and its pointer lives for 19 minutes and more.
        if self._air is not None:
            before = time.time_ns() // 1000 - self._silent
            for source in self.discovered.silent_since(before, _ASK_AFTER):
                self._air.ask(source)

    async def _leave(self) -> None:
        air, self._air, self._announced = self._air, None, None
        if air is not None:
            with contextlib.suppress(Exception):
                await air.close(goodbye=False)


def _multicast() -> type[MdnsClient]:
    from neighborhoods.discovery.mdns import MdnsClient

    return MdnsClient


def _message_of(error: Exception) -> str:
    import errno

    if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
        return "Another program keeps multicast DNS (UDP port 5353) for itself."
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return f"Announcing on this network failed: {reason or type(error).__name__}."


_ASK_AFTER = 8
