"""Phones of this machine: the pairing window, registered devices, and who is connected now."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from envelopes.errors import ReportableError
from envelopes.identity.keys import IdentityKey
from rappd.daemon.home import Home
from rappd.errors import RefusedError, StoreError, UsageProblemError
from rappd.settings.load import Settings
from rappd.tether import proofs, sdp
from rappd.tether.addresses import reachable_addresses
from rappd.tether.checked_offer import CheckedOffer
from rappd.tether.connection import PhoneConnection
from rappd.tether.devices import EGG, WORKFLOW, Device, DeviceRegistry, checked_scope
from rappd.tether.errors import (
    BadEggTokenError,
    BadOfferError,
    TetherUnavailableError,
    UnknownDeviceError,
    WindowClosedError,
)
from rappd.tether.handshake import Handshake
from rappd.tether.host_key import HostKey
from rappd.tether.phone_eggs import PhoneEggs
from rappd.tether.qr_code import as_svg
from rappd.tether.rtc_client import Channel, RtcClient
from rappd.tether.screen import Screen
from rappd.tether.session import RunWorkflow
from rappd.tether.session_list import SessionRow
from rappd.tether.sessions import Session, Sessions
from rappd.tether.window import LONGEST_SECONDS, PairingWindow

log = logging.getLogger(__name__)

MOST_PENDING = 8


class TetherListener(Protocol):
    """The listener that serves the phone's page."""

    port: int

    async def open(self, port: int) -> None:
        """Listens; raises ``TetherUnavailableError``. Idempotent."""
        ...

    async def close(self) -> None:
        """Listens no more. Idempotent."""
        ...


class Workflows(Protocol):
    """The Coordinator, as phones use it."""

    async def from_phone(self, session: Session, device: Device, action: str, name: str) -> None:
        """Starts, pauses, resumes or aborts a workflow. Raises ``ReportableError``."""
        ...

    def offered(self) -> list[dict[str, Any]]:
        """Workflows that can be started."""
        ...


class TetherService:
    """All calls come from the event loop."""

    def __init__(
        self,
        home: Home,
        settings: Callable[[], Settings],
        identity: IdentityKey,
        sessions: Sessions,
        machine: str,
    ) -> None:
        self.machine = machine
        self.sessions = sessions
        self.listener: TetherListener | None = None
        self.workflows: Workflows | None = None
        self.eggs = PhoneEggs()
        self.window: PairingWindow | None = None
        self.connections: set[PhoneConnection] = set()
        self.rtc = RtcClient()
        self.screens: set[Screen] = set()
        self._home, self._settings, self._identity = home, settings, identity
        self._devices: DeviceRegistry | None = None
        self._key: HostKey | None = None
        self._asking: _Asking | None = None
        self._outcome: dict[str, Any] = {}
        self._closing: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._session = ""
        self._choosing = asyncio.Lock()

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
            except TetherUnavailableError as problem:
                log.error("phones cannot connect: %s", problem)

    def close_screens(self) -> None:
        """Lets every page of this computer go: an open one does not hold up the end."""
        for screen in self.screens:
            screen.close()

    async def close(self) -> None:
        """Ends every connection."""
        self._forget_window()
        for connection in list(self.connections):
            connection.end("the daemon stops")
        if self.listener is not None:
            await self.listener.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.sessions.close()
        await self.rtc.close()

    async def open_window(
        self, *, name: str = "", seconds: float | None = None, scope: str = "talk", user: str = ""
    ) -> dict[str, Any]:
        """Shows a new code. Raises ``TetherUnavailableError`` while another one is shown, ``UsageProblemError``."""
        seconds = self._settings().number("tether.window_seconds") if seconds is None else seconds
        if not 0 < seconds <= LONGEST_SECONDS:
            raise UsageProblemError(
                f"A code lives 1 to {LONGEST_SECONDS} seconds.", do="rappd pair --ttl 120"
            )
        if self.window is not None and self.window.open:
            raise TetherUnavailableError("A QR code is shown already.", do="Use it, or: rappd pair --cancel")
        checked_scope(scope)
        await self._open_listener()
        self._forget_window()
        self.window = PairingWindow(seconds, scope, user, name)
        self._closing = asyncio.get_running_loop().call_later(seconds, self._window_over)
        return self.window_state()

    def window_state(self) -> dict[str, Any]:
        """The state for the operator's screen: links, the digits to compare, or how it ended."""
        window, asking = self.window, self._asking
        if window is None:
            return {"state": "closed", **self._outcome}
        if self._outcome:
            return {"id": window.id, **self._outcome}
        if asking is not None:
            return {
                "state": "waiting" if asking.answered else "compare",
                "id": window.id,
                "digits": asking.digits,
                "name": asking.name,
                "remaining": window.remaining,
            }
        if not window.open:
            return {"state": "expired", "id": window.id}
        links = [
            proofs.link(one, window.id, window.token, proofs.host_pin(self._host_key().public))
            for one in self.addresses()
        ]
        return {
            "state": "open", "id": window.id, "remaining": window.remaining, "visited": window.visited,
            "port": self._port, "port_taken": self._port_taken,
            "links": links, "short_links": [f"http://{one}/t" for one in self.addresses()], "code": window.code,
        }  # fmt: skip

    def answer(self, id: str, same: bool) -> dict[str, Any]:
        """The operator compared the digits. Raises ``WindowClosedError`` when nobody asks."""
        if self._asking is None or self.window is None or id != self.window.id:
            raise WindowClosedError
        self._asking.answered = same
        self._asking.connection.answer(same)
        if not same:
            self._outcome = {"state": "differs"}
        return self.window_state()

    def qr_code(self) -> str:
        """The link as an SVG picture. Raises ``WindowClosedError``, ``TetherUnavailableError`` without ``qrcode``."""
        links = self.window_state().get("links")
        if not links:
            raise WindowClosedError
        try:
            return as_svg(links[0])
        except ImportError:
            raise TetherUnavailableError(
                "The QR code cannot be drawn: qrcode is missing.", do="pip install 'rappd[tether]'"
            ) from None

    async def close_window(self) -> dict[str, Any]:
        """Takes the code back."""
        if self._asking is not None:
            self._asking.connection.expire()
        self._forget_window()
        await self._close_if_unused()
        return self.window_state()

    def addresses(self) -> list[str]:
        """``host:port`` of the listener, the address most likely to be reached first."""
        assert self.listener is not None
        return reachable_addresses(self._settings().text("tether.address"), self.listener.port)

    async def offer(self, body: dict[str, Any], client: str) -> dict[str, Any]:
        """Answers a browser's offer. Raises ``BadOfferError``, ``WindowClosedError``, ``UnknownDeviceError``."""
        text = sdp.checked_offer(body.get("sdp"), client)
        guest_print = sdp.fingerprint(text)
        asked = self._asked(body, guest_print)
        answer, channel = await self.rtc.offer(text)
        connection = self._connect(channel, asked, sdp.fingerprint(answer), guest_print, client)
        channel.attach(connection)
        return {"sdp": answer, **asked.shown, "machine": self.machine}

    def socket(
        self, body: dict[str, Any], channel: Channel, client: str
    ) -> tuple[PhoneConnection, dict[str, Any]]:
        """The same over a WebSocket, which no fingerprint binds: returns the connection and the first frame."""
        asked = self._asked(body, b"")
        connection = self._connect(channel, asked, b"", b"", client)
        connection.on_open()
        return connection, {"type": "opened", **asked.shown, "machine": self.machine}

    def listing(self) -> list[dict[str, Any]]:
        """Every device with its presence."""
        return [self.shown(one) for one in self.devices.all()]

    def shown(self, device: Device) -> dict[str, Any]:
        """One device as screens show it."""
        here = next((one for one in self.connections if one.device is device), None)
        way = "" if here is None else ("webrtc" if here.guest_print else "websocket")
        return {**device.shown(), "connected": here is not None, "way": way}

    def looks(self) -> object:
        """Another value whenever a screen would show phones differently, or the code and the digits."""
        window = {**self.window_state(), "remaining": None} if self.window is not None else {}
        devices = [(one.id, one.name, one.caps, one.user) for one in self._registered()]
        here = {one.device.id for one in self.connections if one.device is not None}
        return repr(window), devices, here

    def summary(self) -> dict[str, Any]:
        """The numbers for the start screen, ``rappd status`` and ``rappd doctor``. Blocks 1 ms."""
        return {
            "registered": len(self._registered()),
            "connected": len({one.device.id for one in self.connections if one.device is not None}),
            "port": self._port,
            "port_taken": self._port_taken,
            "webrtc": RtcClient.installed(),
        }

    def visited(self) -> None:
        """Somebody opened the page."""
        if self.window is not None:
            self.window.visited = True

    def revoke(self, device: Device) -> None:
        """Removes a device and closes its connections at once."""
        self.devices.remove(device)
        self.eggs.forget(device)
        log.warning("security: the phone %s (%s) was removed", device.name, device.id[:16])
        for connection in list(self.connections):
            if connection.device is device:
                connection.show({"type": "revoked"})
                connection.end("removed")
        self._spawn(self._close_if_unused())

    def allow(
        self, device: Device, scope: str, *, workflows: bool, eggs: bool = False, user: str | None
    ) -> None:
        """Changes what a device may do, at once."""
        self.devices.allow(device, scope, workflows=workflows, eggs=eggs, user=user)
        for connection in self.connections:
            if connection.device is device:
                connection.allow()

    def ask(self, connection: PhoneConnection, digits: str, name: str) -> None:
        """A phone proved the code: the operator compares the digits."""
        if self._asking is not None or self.window is None or not self.window.open:
            connection.expire()
            return
        self._asking = _Asking(connection, digits, self.window.name or name)

    def accept(self, connection: PhoneConnection, name: str) -> Device:
        """Registers a device that pairs, or greets one that is registered."""
        device = connection.resumes
        if device is None:
            window = self.window
            assert window is not None
            window.used = True
            device = self.devices.add(
                connection.guest_print,
                window.name or name,
                scope=window.scope,
                user=window.user,
                seen_from=connection.address,
            )
            self._asking, self._outcome = None, {"state": "paired", "device": device.shown()}
            log.warning(
                "security: the phone %s (%s) was paired from %s",
                device.name,
                device.id[:16],
                connection.address,
            )
        elif self.devices.seen(device, connection.address, device.session):
            log.warning(
                "security: the phone %s connects from a new address, %s", device.name, connection.address
            )
        for other in list(self.connections):
            if other is not connection and other.device is device:
                other.end("connected anew")
        return device

    def ended(self, connection: PhoneConnection, reason: str) -> None:
        """A connection is over."""
        self.connections.discard(connection)
        log.info("a phone's connection ended: %s", reason)
        if reason == "bad_proof" and self.window is not None and connection.resumes is None:
            self.window.bad_proofs += 1
        if self._asking is not None and self._asking.connection is connection:
            self._asking = None
            if reason in ("differs", "refused"):
                self._outcome = {"state": "differs"}
                if self.window is not None:
                    self.window.used = True

    def run_workflow(self, connection: PhoneConnection, asked: RunWorkflow) -> None:
        """Starts, pauses, resumes or aborts a workflow for a phone, or tells it why not."""
        self._spawn(self._run_workflow(connection, asked))

    async def _run_workflow(self, connection: PhoneConnection, asked: RunWorkflow) -> None:
        device, session = connection.device, connection.session
        if self.workflows is None or device is None or session is None:
            return
        try:
            await self.workflows.from_phone(session, device, asked.action, asked.name)
        except ReportableError as problem:
            text = f"{problem} {problem.do}" if isinstance(problem, RefusedError) else str(problem)
            connection.show({"type": "refused", "event_id": "", "error": text})

    def eggs_for(self, device: Device) -> dict[str, Any]:
        """The frame that tells a phone what it may do with eggs."""
        return self.eggs.shown(device)

    def send_egg_token(self, connection: PhoneConnection) -> None:
        """Sends a phone a token for one request for an egg, or tells it why not."""
        if connection.device is None:
            return
        try:
            connection.show(self.eggs.token(connection.device))
        except ReportableError as problem:
            connection.show({"type": "refused", "event_id": "egg_token", "error": f"{problem} {problem.do}"})

    async def offer_egg(self, device: Device, path: Path) -> dict[str, Any]:
        """Puts an egg there for a phone, which is told at once. Raises ``RefusedError``, ``ReportableError``."""
        offered = await self.eggs.offer(device, path)
        for connection in self.connections:
            if connection.device is device:
                connection.show(self.eggs.shown(device))
        return {"device": device.name, "name": offered.name, "size": offered.size}

    def egg_caller(self, token: str) -> Device:
        """The device whose request carries this token. Raises ``BadEggTokenError``."""
        device = self.eggs.tokens.redeem(token, self.devices.get)
        if not self.may_carry_eggs(device):
            raise BadEggTokenError
        return device

    def may_carry_eggs(self, device: Device) -> bool:
        """True while it is registered here and may send and fetch eggs."""
        return self.devices.get(device.id) is device and EGG in device.caps

    def workflows_for(self, device: Device) -> dict[str, Any]:
        """The frame that tells a phone which workflows it may run. Blocks on the disk."""
        may = self.workflows is not None and WORKFLOW in device.caps
        rows = self.workflows.offered() if self.workflows is not None and may else []
        return {"type": "workflows", "may_run": may, "workflows": rows}

    async def current_session(self) -> Session:
        """The session that phones join: the newest, or a new one."""
        async with self._choosing:  # two phones that join at once join the same
            if not self._session:
                rows = await self.sessions.record.rows()
                self._session = rows[0].id if rows else ""
            session = await self.sessions.open(self._session)
            self._session = session.id
        return session

    async def shown_session(self, row: SessionRow) -> dict[str, Any]:
        """A session as lists show it: who is in it, and if phones join it."""
        current = self._session or (await self.sessions.find("")).id
        session = self.sessions.opened(row.id)
        return {
            **row.shown(),
            "here": [] if session is None else session.here,
            "closed": await self.sessions.record.is_closed(row.thread),
            "current": row.id == current,
        }

    def move_to(self, session: Session) -> None:
        """Makes a session the one that phones join, and takes the connected ones there."""
        self._session = session.id
        for connection in self.connections:
            connection.move()

    def _asked(self, body: dict[str, Any], guest_print: bytes) -> CheckedOffer:
        """Checks who asks. A device that is unknown gets the same answer after the same work."""
        try:
            promise = proofs.unb64(body.get("commit"), 32)
        except ValueError:
            raise BadOfferError("The offer lacks its commitment.") from None
        if len([one for one in self.connections if one.device is None]) >= MOST_PENDING:
            raise TetherUnavailableError("Too many phones connect at once.", do="Try again.")
        host, nonce = self._host_key(), secrets.token_bytes(proofs.NONCE_BYTES)
        id = body.get("device")
        if isinstance(id, str) and id:
            device = self.devices.get(id)
            if device is None:
                raise UnknownDeviceError
            return CheckedOffer(
                id,
                promise,
                nonce,
                host,
                device,
                (proofs.unb64(device.secret),),
                device.certificate and id == guest_print.hex(),
            )
        window = str(body.get("window") or "")
        if self.window is None or not self.window.fits(window):
            raise WindowClosedError
        return CheckedOffer(self.window.id, promise, nonce, host, None, self.window.keys(), False)

    def _connect(
        self, channel: Channel, asked: CheckedOffer, host_print: bytes, guest_print: bytes, client: str
    ) -> PhoneConnection:
        parts = proofs.Parts(asked.subject, host_print, guest_print, asked.nonce, b"", asked.host.public)
        handshake = Handshake(
            parts,
            asked.promise,
            asked.keys,
            asked.host.proof,
            resumes=asked.device is not None,
            proved=asked.proved,
        )
        connection = PhoneConnection(channel, handshake, self, client, guest_print, asked.device)
        self.connections.add(connection)
        return connection

    async def _open_listener(self) -> None:
        if self.listener is None:
            raise TetherUnavailableError("The daemon is not ready yet.", do="Try again.")
        if self._key is None:
            self._key = await asyncio.to_thread(HostKey, self._home, self._identity)
        await self.listener.open(self._settings().number("tether.port"))
        if not self.addresses():
            await self._close_if_unused()
            raise TetherUnavailableError(
                "This computer is on no network that a phone could reach.",
                do="Connect it to the Wi-Fi, then: rappd pair",
            )
        if RtcClient.installed():
            await self.rtc.start()

    async def _close_if_unused(self) -> None:
        if (
            self.listener is not None
            and not self.devices.all()
            and (self.window is None or not self.window.open)
        ):
            await self.listener.close()
            await self.rtc.close()

    def _registered(self) -> list[Device]:
        try:
            return self.devices.all()
        except StoreError:
            return []  # `rappd devices list` says that the file is damaged

    @property
    def _port(self) -> int:
        """The listener's port, 0 while it is closed."""
        return self.listener.port if self.listener is not None else 0

    @property
    def _port_taken(self) -> int:
        """The port of the settings where the listener had to take another; else 0."""
        wanted = self._settings().number("tether.port")
        return wanted if self._port not in (0, wanted) else 0

    def _host_key(self) -> HostKey:
        assert self._key is not None
        return self._key

    def _forget_window(self) -> None:
        if self._closing is not None:
            self._closing.cancel()
        self.window, self._asking, self._outcome, self._closing = None, None, {}, None

    def _window_over(self) -> None:
        if self.window is not None:
            self.window.close()
        if self._asking is not None:
            self._asking.connection.expire()
        self._spawn(self._close_if_unused())

    def _spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work for a phone failed", exc_info=error)


@dataclass(slots=True)
class _Asking:
    """A phone that proved the code; ``answered`` is True once the operator said that the digits are the same."""

    connection: PhoneConnection
    digits: str
    name: str
    answered: bool = False
