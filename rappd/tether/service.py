"""Phones of this machine: registered devices, the listener that opens for them, and codes to join by.

The modules that speak with phones are imported when the listener opens for the first time.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

from envelopes.identity.keys import IdentityKey
from rappd.daemon.home import Home
from rappd.errors import StoreError, UsageProblemError
from rappd.notices.notices import Notices
from rappd.sessions.session_of_phones import CurrentSession
from rappd.sessions.sessions import Session, Sessions
from rappd.settings.load import Settings
from rappd.tether.devices import (
    ConnectedDevice,
    Device,
    DeviceRegistry,
    EggOffer,
    Kind,
    PhonesSummary,
    WindowState,
    checked_scope,
)
from rappd.tether.errors import TetherUnavailableError, WindowClosedError
from rappd.tether.session_screen import Screen
from rappd.tether.webrtc import webrtc_installed

if TYPE_CHECKING:
    import ssl

    from rappd.features.operation import OperationTable
    from rappd.tether.host_key import HostKey
    from rappd.tether.pairing import Pairing
    from rappd.tether.pairing_window import PairingWindow
    from rappd.tether.phone_eggs import EggStore
    from rappd.tether.phone_waiting import OwnersList
    from rappd.tether.phones import Phones, Workflows

log = logging.getLogger(__name__)


class TetherListener(Protocol):
    """The listener that serves the phone's page."""

    port: int
    bound: tuple[str, ...]

    async def open(self, port: int) -> None:
        """Listens; raises ``TetherUnavailableError``. Idempotent."""
        ...

    async def close(self) -> None:
        """Listens no more. Idempotent."""
        ...


MakeListener = Callable[["Phones", Callable[[], list[str]], "ssl.SSLContext | None"], TetherListener]
"""Makes the listener for phones; the second argument returns its addresses, the third is for https."""


class PhoneServices(NamedTuple):
    """The parts of the daemon that phones with a right to them may use, beside talking."""

    workflows: Workflows
    egg_store: EggStore
    owners_list: OwnersList
    operations: Callable[[], OperationTable]
    """Makes the table of those that phones ask for over their connections."""


class TetherService:
    """All calls come from the event loop."""

    def __init__(
        self,
        home: Home,
        settings: Callable[[], Settings],
        identity: IdentityKey,
        sessions: Sessions,
        machine: str,
        notices: Notices,
        phones: PhoneServices,
        make_listener: MakeListener,
    ) -> None:
        self.machine = machine
        self.sessions = sessions
        self.current = CurrentSession(sessions)
        self._phone_services, self._make_listener = phones, make_listener
        self.screens: set[Screen] = set()
        self._home, self._settings, self._identity, self._notices = home, settings, identity, notices
        self._devices: DeviceRegistry | None = None
        self._open: _Open | None = None
        notices.watchers.add(self._notices_changed)
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def devices(self) -> DeviceRegistry:
        """Raises ``StoreError`` when the list is damaged."""
        if self._devices is None:
            self._devices = DeviceRegistry(self._home.root / "devices.json")
        return self._devices

    async def start(self) -> None:
        """Opens the listener where a device is registered. A failure is logged: the rest works without."""
        if (self._home.root / "devices.json").exists() and self.devices.all():
            try:
                await self._open_listener()
            except (TetherUnavailableError, StoreError) as problem:
                log.error("phones cannot connect: %s", problem)

    def close_screens(self) -> None:
        """Lets every page of this computer go: an open one does not hold up the end."""
        for screen in self.screens:
            screen.close()

    async def close(self) -> None:
        """Ends every connection."""
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._open is not None:
            self._open.pairing.cancel()
            await self._open.listener.close()
            await self._open.phones.close()
        await self.sessions.close()

    async def open_window(
        self,
        *,
        name: str = "",
        seconds: float | None = None,
        scope: str = "talk",
        user: str = "",
        session: bool = False,
    ) -> WindowState:
        """Shows a new code. Raises ``TetherUnavailableError`` while another one is shown, ``UsageProblemError``."""
        from rappd.tether.pairing_window import LONGEST_SECONDS, PairingWindow

        seconds = self._settings().number("tether.window_seconds") if seconds is None else seconds
        if not 0 < seconds <= LONGEST_SECONDS:
            raise UsageProblemError(
                f"A code lives 1 to {LONGEST_SECONDS} seconds.", do="rappd pair --ttl 120"
            )
        checked_scope(scope)
        self._refuse_a_second()
        found = await self._open_listener()
        self._refuse_a_second()
        found.pairing.open(PairingWindow(seconds, scope, user, name, invited=session))
        return found.pairing.state()

    def window_state(self) -> WindowState:
        """The state for the operator's screen: links, the digits to compare, or how it ended."""
        return {"state": "closed"} if self._open is None else self._open.pairing.state()

    def answer(self, id: str, same: bool, kind: Kind) -> WindowState:
        """The operator compared the digits. Raises ``WindowClosedError`` when nobody asks."""
        if self._open is None:
            raise WindowClosedError
        self._open.pairing.answer(id, same, kind)
        return self.window_state()

    def qr_code(self) -> str:
        """The link as an SVG picture. Raises ``WindowClosedError``, ``TetherUnavailableError`` without ``qrcode``."""
        if self._open is None:
            raise WindowClosedError
        link = self._open.pairing.link()
        try:
            from rappd.tether.qr_code import as_svg

            return as_svg(link)
        except ImportError:
            raise TetherUnavailableError(
                "The QR code cannot be drawn: qrcode is missing.", do="pip install 'rappd[tether]'"
            ) from None

    async def close_window(self) -> WindowState:
        """Takes the code back."""
        if self._open is not None:
            self._open.pairing.cancel()
            await self._close_if_unused()
        return self.window_state()

    def listing(self) -> list[ConnectedDevice]:
        """Every device with its presence."""
        return [self.shown(one) for one in self.devices.all()]

    def shown(self, device: Device) -> ConnectedDevice:
        """One device as screens show it."""
        here = None if self._open is None else self._open.phones.of(device)
        way = "" if here is None else ("webrtc" if here.guest_print else "websocket")
        return {**device.shown(), "connected": here is not None, "way": way}

    async def looks(self) -> object:
        """Another value whenever a screen would show phones differently, or the code and the digits."""
        window = {**self.window_state(), "remaining": None} if self._open is not None else {}
        devices = [(one.id, one.name, one.caps, one.user) for one in self._registered()]
        return repr(window), devices, self._connected()

    def summary(self) -> PhonesSummary:
        """The numbers for the start screen, ``rappd status`` and ``rappd doctor``. Blocks 1 ms."""
        port, wanted = self.port, self._settings().number("tether.port")
        return {
            "registered": len(self._registered()),
            "connected": len(self._connected()),
            "port": port,
            "port_taken": wanted if port not in (0, wanted) else 0,
            "addresses": self.addresses() if port else [],
            "webrtc": webrtc_installed(),
        }

    def revoke(self, device: Device) -> None:
        """Removes a device and closes its connections at once. Raises ``StoreError``, see ``DeviceRegistry.remove``."""
        log.warning("security: the phone %s (%s) was removed", device.name, device.id[:16])
        try:
            self.devices.remove(device)
        finally:
            if self._open is not None:
                self._open.phones.remove(device)
                self._spawn_closing()

    def allow(
        self,
        device: Device,
        scope: str,
        *,
        workflows: bool,
        eggs: bool = False,
        notices: bool = False,
        user: str | None,
        kind: Kind | None = None,
        invited: bool | None = None,
    ) -> None:
        """Changes what a device may do, at once."""
        self.devices.allow(
            device,
            scope,
            workflows=workflows,
            eggs=eggs,
            notices=notices,
            user=user,
            kind=kind,
            invited=invited,
        )
        if self._open is not None:
            self._open.phones.allow(device)

    def let_approve(self, device: Device, approve: bool) -> None:
        """Lets a device answer what waits for the owner, or no longer, at once. Raises ``RefusedError``."""
        self.devices.let_approve(device, approve)
        if self._open is not None:
            self._open.phones.allow(device)

    def timer_spoke(self, user: str, thread: str) -> None:
        """Tells connected phones of a user that a timer spoke on a thread; the others read it at their next visit."""
        if self._open is not None:
            self._open.phones.timer_spoke(user, thread)

    def _notices_changed(self) -> None:
        if self._open is not None:
            self._open.phones.notices_changed()

    def workflows_changed(self) -> None:
        """Shows connected phones the workflows that they may start now."""
        if self._open is not None:
            self._open.phones.show_rights()

    async def offer_egg(self, device: Device, path: Path) -> EggOffer:
        """Puts an egg there for a phone, which is told at once. Raises ``RefusedError``, ``ReportableError``."""
        found = await self._open_listener()
        return await found.phones.offer_egg(device, path)

    def move_to(self, session: Session) -> None:
        """Makes a session the one that phones join, and takes the connected ones there."""
        self.current.choose(session)
        if self._open is not None:
            self._open.phones.move()

    def addresses(self) -> list[str]:
        """``host:port`` of the listener, the address most likely to be reached first. Blocks 1 ms."""
        from rappd.tether.addresses import reachable_addresses

        return reachable_addresses(self._open.listener.bound if self._open is not None else (), self.port)

    async def _open_listener(self) -> _Open:
        async with self._opening:
            if self._open is None:
                self._open = await self._made()
            await self._open.listener.open(self._settings().number("tether.port"))
            if not self.addresses():
                await self._close_unused()
                raise TetherUnavailableError(
                    "This computer is on no network that a phone could reach.",
                    do="Connect it to the Wi-Fi, then: rappd pair",
                )
            if webrtc_installed():
                await self._open.phones.rtc.start()
            return self._open

    async def _made(self) -> _Open:
        from neighborhoods.auth.allowed_networks import LocalNetworks
        from rappd.tether.host_key import HostKey
        from rappd.tether.pairing import Pairing
        from rappd.tether.phone_eggs import PhoneEggs
        from rappd.tether.phone_requests import RequestTable
        from rappd.tether.phone_waiting import PhoneWaiting
        from rappd.tether.phones import Phones

        tls = self._settings().on("tether.tls")
        key = await asyncio.to_thread(HostKey, self._home, self._identity, tls=tls)
        pairing = Pairing(lambda window: self._links(window, key), self._spawn_closing)
        eggs = PhoneEggs(self._phone_services.egg_store)
        waiting = PhoneWaiting(self._phone_services.owners_list)
        phones = Phones(
            self.machine,
            key,
            self.devices,
            pairing,
            self.sessions,
            self.current,
            self._phone_services.workflows,
            eggs,
            waiting,
            self._notices,
            LocalNetworks(self._settings().items("listen.networks")),
            RequestTable(self._phone_services.operations()),
        )
        return _Open(self._make_listener(phones, self.addresses, key.tls), phones, pairing)

    def _links(self, window: PairingWindow, key: HostKey) -> WindowState:
        from rappd.tether import proofs
        from rappd.tether.addresses import one_of_each_network

        summary, pin = self.summary(), proofs.host_pin(key.public)
        scheme = "https" if key.tls else "http"
        pages = [f"{scheme}://{one}/t" for one in one_of_each_network(self.addresses())]
        return {
            "state": "open",
            "id": window.id,
            "remaining": window.remaining,
            "visited": window.visited,
            "code": window.code,
            "port": summary["port"],
            "port_taken": summary["port_taken"],
            "links": [proofs.link(one, window.id, window.token, pin) for one in pages],
            "short_links": pages,
            "certificate": key.fingerprint if key.tls else "",
        }

    def _refuse_a_second(self) -> None:
        if self._open is not None and self._open.pairing.is_open:
            raise TetherUnavailableError("A QR code is shown already.", do="Use it, or: rappd pair --cancel")

    async def _close_if_unused(self) -> None:
        async with self._opening:
            await self._close_unused()

    async def _close_unused(self) -> None:
        if self._open is not None and not self.devices.all() and not self._open.pairing.is_open:
            await self._open.listener.close()
            await self._open.phones.rtc.close()

    def _registered(self) -> list[Device]:
        try:
            return self.devices.all()
        except StoreError:
            return []  # `rappd devices list` says that the file is damaged

    def _connected(self) -> set[str]:
        """Ids of the devices that are here."""
        connections = self._open.phones.connections if self._open is not None else set()
        return {one.device.id for one in connections if one.device is not None}

    @property
    def port(self) -> int:
        """The listener's port, 0 while it is closed."""
        return self._open.listener.port if self._open is not None else 0

    def _spawn_closing(self) -> None:
        task = asyncio.ensure_future(self._close_if_unused())
        self._tasks.add(task)
        task.add_done_callback(self._closed)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("the listener for phones did not close", exc_info=error)


@dataclass(frozen=True, slots=True)
class _Open:
    """The parts that exist once the listener has been open."""

    listener: TetherListener
    phones: Phones
    pairing: Pairing
