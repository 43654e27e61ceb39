"""Multicast DNS on the wire, by zeroconf. Imported only once it is wanted: the library is heavy."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Collection
from typing import Any, Protocol

from zeroconf import (
    BadTypeInNameException,
    Error,
    IPVersion,
    RecordUpdate,
    RecordUpdateListener,
    ServiceStateChange,
    Zeroconf,
)
from zeroconf.asyncio import AsyncServiceBrowser, AsyncServiceInfo, AsyncZeroconf

from neighborhoods.discovery.announcement import A2A_SERVICE, SERVICE, Announcement
from neighborhoods.discovery.interfaces import Interface, announced_addresses

logging.getLogger("zeroconf").setLevel(logging.ERROR)  # its warnings are told as the source's trouble

Found = AsyncServiceInfo
"""A resolved announcement: ``properties``, ``port``, ``parsed_scoped_addresses()``."""


class MdnsListener(Protocol):
    """Receives announcements. ``source`` is the DNS name of one. Must not raise."""

    def on_found(self, source: str, found: Found) -> None:
        """An announcement, new or changed."""

    def on_heard(self, source: str) -> None:
        """The same announcement once more."""

    def on_gone(self, source: str) -> None:
        """An announcement was withdrawn, ran out, or is not answered for."""


class MdnsClient:
    """Open sockets for multicast on some interfaces: browses at once, announces when asked."""

    def __init__(
        self, hearer: MdnsListener, interfaces: tuple[Interface, ...], hosts: Collection[str]
    ) -> None:
        """Opens. ``hosts``: where this machine listens; no other address is announced.

        Raises ``OSError`` or ``RuntimeError`` where that is impossible.
        """
        self._hearer, self._hosts = hearer, hosts
        choice, version = _choice(interfaces)
        self._zeroconf = AsyncZeroconf(interfaces=choice, ip_version=version)
        self._addresses = announced_addresses(interfaces, hosts)
        self._announced: AsyncServiceInfo | None = None
        self._as_agent: AsyncServiceInfo | None = None
        self._ear = _RecordListener(self)
        self._zeroconf.zeroconf.async_add_listener(self._ear, None)
        self._asked: dict[str, None] = {}
        self._asking: set[asyncio.Task[None]] = set()
        self._later: dict[str, asyncio.TimerHandle] = {}
        self._heard_since: set[str] = set()
        self._saying: asyncio.Future[Any] | None = None
        self._browser = self._browse()

    @property
    def instance(self) -> str:
        """The DNS name under which this machine is announced; "" when it is not."""
        return self._announced.name if self._announced else ""

    async def announce(self, wanted: Announcement) -> None:
        """Announces this machine, or announces it anew. A taken name gets -2, -3, … at its end.

        Takes about 1.2 s for a name that is not announced yet: others are asked first. As an A2A agent it has the
        same name.
        """
        await self._announce_machine(wanted)
        await self._announce_agent(wanted)

    async def _announce_machine(self, wanted: Announcement) -> None:
        before = self._announced
        if before is not None and wanted.port and before.name == self._name_given(wanted):
            info = self._info(wanted, before.name, SERVICE, wanted.properties())
            self._announced = info
            self._say(await self._zeroconf.async_update_service(info))
            return
        if wanted.port:
            info = self._info(wanted, wanted.instance, SERVICE, wanted.properties())
            self._say(await self._zeroconf.async_register_service(info, allow_name_change=True))
            self._announced, self._base = info, wanted.instance
        else:
            self._announced = None
        if before is not None:
            _in_background(await self._zeroconf.async_unregister_service(before))

    async def _announce_agent(self, wanted: Announcement) -> None:
        before, self._as_agent = self._as_agent, None
        if wanted.a2a and self.instance:
            name = f"{self.instance.removesuffix(SERVICE)}{A2A_SERVICE}"
            info = self._info(wanted, name, A2A_SERVICE, wanted.card_properties)
            if before is not None and before.name == name:
                _in_background(await self._zeroconf.async_update_service(info))
                before = None
            else:
                _in_background(await self._zeroconf.async_register_service(info, allow_name_change=True))
            self._as_agent = info
        if before is not None:
            _in_background(await self._zeroconf.async_unregister_service(before))

    async def follow(self, interfaces: tuple[Interface, ...], announcement: Announcement | None) -> None:
        """Goes over to other interfaces or addresses, and announces ``announcement`` with them."""
        self._addresses = announced_addresses(interfaces, self._hosts)
        if announcement is not None:
            await self.announce(announcement)
        choice, version = _choice(interfaces)
        await self._zeroconf.async_update_interfaces(choice, version)

    async def look_again(self) -> None:
        """Asks the network anew who is there."""
        await self._browser.async_cancel()
        self._browser = self._browse()

    def heard_again(self, source: str) -> None:
        """An announcement came once more: what it replaces leaves the cache a second later."""
        self._hearer.on_heard(source)
        self._read_soon(source)

    def ask(self, source: str) -> None:
        """Asks after one announcement: it is found again, or gone."""
        if len(self._asked) < _MOST_ASKED:
            self._asked[source] = None
        if len(self._asking) < _ASK_AT_ONCE:
            task = asyncio.get_running_loop().create_task(self._ask())
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)

    async def close(self, *, goodbye: bool = True) -> None:
        """Withdraws the announcement and closes. Takes a second at most."""
        for timer in self._later.values():
            timer.cancel()
        for task in tuple(self._asking):
            task.cancel()
        self._asked.clear()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.9):
                await self._browser.async_cancel()
                for one in (self._announced, self._as_agent):
                    if not goodbye and one is not None:
                        self._zeroconf.zeroconf.registry.async_remove(one)
                await self._zeroconf.async_close()

    def _browse(self) -> AsyncServiceBrowser:
        return AsyncServiceBrowser(self._zeroconf.zeroconf, SERVICE, handlers=[self._changed])

    def _changed(self, *, state_change: ServiceStateChange, name: str, **_: Any) -> None:
        if state_change is ServiceStateChange.Removed:
            self._hearer.on_gone(name)
            return
        self._read(name)
        self._read_soon(name)

    def _read_soon(self, name: str) -> None:
        # An address that was left behind stays in the cache for a second after the last that was heard.
        if name == self.instance:
            return  # what this machine says is only heard, never read back
        if name in self._later:
            self._heard_since.add(name)
        elif len(self._later) < _MOST_ASKED:
            loop = asyncio.get_running_loop()
            self._later[name] = loop.call_later(1.5, self._read_later, name)

    def _read_later(self, name: str) -> None:
        self._later.pop(name, None)
        self._read(name)
        if name in self._heard_since:
            self._heard_since.discard(name)
            self._read_soon(name)

    def _say(self, sending: Awaitable[Any]) -> None:
        # What was being repeated until now may name an address that is left: not after the new one.
        if self._saying is not None:
            self._saying.cancel()
        self._saying = _in_background(sending)

    def _read(self, name: str) -> None:
        try:
            found = Found(SERVICE, name)
        except BadTypeInNameException:
            return  # a pointer to something else
        if found.load_from_cache(self._zeroconf.zeroconf):
            self._hearer.on_found(name, found)
        else:
            self.ask(name)

    async def _ask(self) -> None:
        while self._asked:
            name, _ = self._asked.popitem()
            try:
                found = Found(SERVICE, name)
            except BadTypeInNameException:
                continue
            try:
                answered = await found.async_request(self._zeroconf.zeroconf, 2_000)
            except Error:
                return  # closed meanwhile
            if answered:
                self._hearer.on_found(name, found)
            else:
                self._hearer.on_gone(name)

    def _info(
        self, wanted: Announcement, name: str, service: str, properties: dict[str, str]
    ) -> AsyncServiceInfo:
        return AsyncServiceInfo(
            service,
            name,
            port=wanted.port,
            properties=properties,
            server=wanted.server,
            parsed_addresses=list(self._addresses),
        )

    def _name_given(self, wanted: Announcement) -> str:
        return self.instance if self._base == wanted.instance else wanted.instance

    _base = ""


class _RecordListener(RecordUpdateListener):
    """Hears announcements that repeat what is known: those the browser keeps to itself."""

    def __init__(self, air: MdnsClient) -> None:
        self._air = air

    def async_update_records(self, zc: Zeroconf, now: float, records: list[RecordUpdate]) -> None:
        for update in records:
            record = update.new
            if record.type != _PTR or update.old is None or record.name.lower() != SERVICE:
                continue
            if not record.is_expired(now):
                self._air.heard_again(record.alias)  # type: ignore[attr-defined] # a pointer has one

    def async_update_records_complete(self) -> None:
        pass


def _choice(interfaces: tuple[Interface, ...]) -> tuple[list[str | int], IPVersion]:
    """One IPv4 address (they share the link's membership) and the number of each interface."""
    four: list[str | int] = []
    six: list[str | int] = []
    for interface in interfaces:
        four += [one for one in interface.addresses if ":" not in one][:1]
        if any(":" in one for one in interface.addresses) and interface.index:
            six.append(interface.index)
    version = IPVersion.All if four and six else IPVersion.V6Only if six else IPVersion.V4Only
    return four + six, version


_running: set[asyncio.Future[Any]] = set()


def _in_background(sending: Awaitable[Any]) -> asyncio.Future[Any]:
    """Lets the repetitions of an announcement run on, and keeps their failure from the log."""
    task = asyncio.ensure_future(sending)
    _running.add(task)
    task.add_done_callback(_settled)
    return task


def _settled(task: asyncio.Future[Any]) -> None:
    _running.discard(task)
    if not task.cancelled():
        task.exception()


_PTR = 12
_MOST_ASKED = 2_000
_ASK_AT_ONCE = 8
