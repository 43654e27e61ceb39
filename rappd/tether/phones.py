"""Phones while the listener for them is open: answers their offers, lets in who proves a code or a device."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import msgspec

from envelopes.errors import ReportableError
from neighborhoods.auth.allowed_networks import LocalNetworks
from neighborhoods.discovery.address_text import network_of
from rappd.dispatch.rights import Right
from rappd.errors import RefusedError
from rappd.notices.notices import Notices
from rappd.sessions.participants import WORKFLOWS, caller_of
from rappd.sessions.session_of_phones import CurrentSession
from rappd.sessions.sessions import Session, Sessions
from rappd.tether import proofs
from rappd.tether.connection_offer import CheckedOffer, Offer, read_offer
from rappd.tether.devices import EGGS, Device, DeviceRegistry, EggOffer
from rappd.tether.egg_transfers import EggTransfer
from rappd.tether.errors import (
    BadEggTokenError,
    OtherCertificateError,
    UnknownDeviceError,
    WindowClosedError,
)
from rappd.tether.handshake import Handshake
from rappd.tether.host_key import HostKey
from rappd.tether.pairing import Pairing
from rappd.tether.phone_connection import PhoneConnection
from rappd.tether.phone_eggs import PhoneEggs
from rappd.tether.phone_requests import RequestTable
from rappd.tether.phone_session import Answer, RunWorkflow
from rappd.tether.phone_waiting import PhoneWaiting
from rappd.tether.rtc_client import Channel, RtcClient
from rappd.tether.webrtc_parameters import reachable

log = logging.getLogger(__name__)

MOST_PENDING = 8


class Workflows(Protocol):
    """The Coordinator, as phones use it."""

    async def from_phone(
        self,
        session: Session,
        device: Device,
        action: str,
        name: str,
        given: dict[str, str],
        plays: dict[str, str],
    ) -> None:
        """Starts, pauses, resumes or aborts a workflow. Raises ``ReportableError``."""
        ...

    async def players(self, *, plain: bool) -> list[str]:
        """Names of those that may play in one."""
        ...

    def offered(self) -> list[dict[str, Any]]:
        """Workflows that can be started."""
        ...


class Phones:
    """All calls come from the event loop. ``key`` proves this machine, whose name is ``machine``."""

    def __init__(
        self,
        machine: str,
        key: HostKey,
        devices: DeviceRegistry,
        pairing: Pairing,
        sessions: Sessions,
        current: CurrentSession,
        workflows: Workflows,
        eggs: PhoneEggs,
        waiting: PhoneWaiting,
        notices: Notices,
        networks: LocalNetworks,
        requests: RequestTable,
    ) -> None:
        self.sessions = sessions
        self.requests = requests
        self.connections: set[PhoneConnection] = set()
        self.rtc = RtcClient()
        self.eggs = eggs
        self.waiting = waiting
        self.networks = networks
        self._machine, self._key = machine, key
        self._devices, self._pairing = devices, pairing
        self._current, self._workflows, self._notices = current, workflows, notices
        self._tasks: set[asyncio.Task[Any]] = set()

    async def close(self) -> None:
        """Ends every connection, and the WebRTC process."""
        for connection in list(self.connections):
            connection.end("the daemon stops")
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.waiting.close()
        await self.rtc.close()

    def visited(self) -> None:
        """A browser opened the page."""
        self._pairing.visited()

    async def offer(self, body: dict[str, Any], client: str) -> dict[str, Any]:
        """Answers a browser's offer.

        Raises ``BadOfferError``, ``WindowClosedError``, ``UnknownDeviceError``, ``OtherCertificateError``.
        """
        offer = read_offer(body, transport=True)
        assert offer.transport is not None
        asked = self._asked(offer, client)
        guest_print = offer.transport.print
        if asked.device is not None and asked.device.fingerprint != guest_print:
            raise OtherCertificateError  # spares the way there: what DTLS verifies would not fit, and decides
        answer, channel = await self.rtc.offer(reachable(offer.transport, client, self.networks.holds))
        connection = self._connect(channel, asked, answer.print, guest_print, client)
        channel.attach(connection)
        transport = msgspec.to_builtins(answer)
        return {"transport": transport, **asked.shown, "machine": self._machine}

    def socket(
        self, body: dict[str, Any], channel: Channel, client: str
    ) -> tuple[PhoneConnection, dict[str, Any]]:
        """The same over a WebSocket, which no fingerprint binds: returns the connection and the first frame."""
        asked = self._asked(read_offer(body, transport=False), client)
        connection = self._connect(channel, asked, b"", b"", client)
        connection.on_open(b"")
        return connection, {"type": "opened", **asked.shown, "machine": self._machine}

    def registered(self, id: object) -> str:
        """The id, if a device of it is registered; "" otherwise."""
        return id if isinstance(id, str) and self._devices.get(id) is not None else ""

    def of(self, device: Device) -> PhoneConnection | None:
        """The device's connection, if it is here."""
        return next((one for one in self.connections if one.device is device), None)

    def remove(self, device: Device) -> None:
        """Tells a removed device so, and closes its connections at once, those on their way in too."""
        self.eggs.forget(device)
        self.eggs.transfers.end_unless_allowed(device)
        for connection in list(self.connections):
            if connection.device is device:
                connection.show({"type": "revoked"})
                connection.end("removed")
            elif connection.resumes is device:  # it has proven nothing, and is told nothing
                connection.end("removed")

    def allow(self, device: Device) -> None:
        """The device's scope was changed."""
        self.eggs.transfers.end_unless_allowed(device)
        for connection in self.connections:
            if connection.device is device:
                connection.allow()

    def show_rights(self) -> None:
        """Workflows were approved: shows every phone anew what it may do."""
        for connection in self.connections:
            connection.allow()

    def notices_changed(self) -> None:
        """Shows connected phones at once what waits now."""
        for connection in self.connections:
            if connection.speaker is not None:
                self.waiting.show(connection)

    def timer_spoke(self, user: str, thread: str) -> None:
        """Tells the phones of a user that a timer spoke in one of the user's conversations."""
        for connection in self.connections:
            if connection.speaker is not None and connection.speaker.user_guid == user:
                connection.show({"type": "timer", "thread": thread})

    def move(self) -> None:
        """Takes the connected phones into the current session."""
        for connection in self.connections:
            connection.move()

    def ask(self, connection: PhoneConnection, digits: str, name: str) -> None:
        """Has the operator compare the digits; ``connection.answer`` takes the answer."""
        self._pairing.ask(connection, digits, name)

    def accept(self, connection: PhoneConnection, name: str) -> Device | None:
        """Returns the device of a phone on which both sides agree, registered now or long ago; None for one removed meanwhile."""
        device = connection.resumes
        if device is None:
            device = self._register(connection, name)
        elif self._devices.get(device.id) is not device:
            return None  # it was looked up when it offered, and removed before its proof
        elif self._devices.seen(device, connection.address, device.session):
            log.warning(
                "security: the phone %s connects from a new address, %s", device.name, connection.address
            )
        if connection.resumes is not None and not connection.guest_print and not connection.proves(device):
            self._by_secret_alone(device, connection.address)
        for other in list(self.connections):
            if other is not connection and other.device is device:
                other.show(
                    {"type": "replaced"}
                )  # a page that still shows it would come back, and end this one
                other.end("connected anew")
        return device

    def ended(self, connection: PhoneConnection, reason: str) -> None:
        """Forgets a connection that is over."""
        self.connections.discard(connection)
        self.waiting.forget(connection)
        log.info("a phone's connection ended: %s", reason)
        if connection.resumes is None:
            self._pairing.failed(connection, reason)

    async def current_session(self) -> Session:
        """Returns the session that phones join."""
        return await self._current.open()

    def run_workflow(self, connection: PhoneConnection, asked: RunWorkflow) -> None:
        """Starts, pauses, resumes or aborts a workflow for a phone, or tells the phone why not."""
        task = asyncio.ensure_future(self._run_workflow(connection, asked))
        self._tasks.add(task)
        task.add_done_callback(self._done)

    async def workflows_for(self, device: Device) -> dict[str, Any]:
        """Returns the frame that tells a phone which workflows it may run."""
        if not WORKFLOWS.admits(caller_of(device)):
            return {"type": "workflows", "may_run": False, "workflows": [], "players": []}
        rows = await asyncio.to_thread(self._workflows.offered)
        players = await self._workflows.players(plain=False)
        return {"type": "workflows", "may_run": True, "workflows": rows, "players": players}

    def eggs_for(self, device: Device) -> dict[str, Any]:
        """Returns the frame that tells a phone what it may do with eggs."""
        return self.eggs.shown(device)

    def send_egg_token(self, connection: PhoneConnection) -> None:
        """Sends a phone a token for one request for an egg, or tells it why not."""
        if connection.speaker is None or connection.withholds(EGGS, "egg_token"):
            return
        try:
            connection.show(self.eggs.token(connection.speaker))
        except ReportableError as problem:
            connection.show({"type": "refused", "event_id": "egg_token", "error": problem.with_advice()})

    def show_waiting(self, connection: PhoneConnection) -> None:
        """Shows a phone what waits for the owner, if it may see that and it changed."""
        self.waiting.show(connection)

    def dismiss(self, connection: PhoneConnection, key: str) -> None:
        """Removes one of the news for a phone, or tells it why not."""
        self.waiting.dismiss(connection, key)

    def look(self, connection: PhoneConnection, key: str) -> None:
        """Shows a phone a matter that waits for the owner, or tells it why not."""
        self.waiting.look(connection, key)

    def answer(self, connection: PhoneConnection, answer: Answer) -> None:
        """Answers a matter that waits for the owner, or tells the phone why not."""
        self.waiting.answer(connection, answer)

    async def offer_egg(self, device: Device, path: Path) -> EggOffer:
        """Puts an egg there for a phone, which is told at once. Raises ``RefusedError``, ``ReportableError``."""
        offered = await self.eggs.offer(device, path)
        for connection in self.connections:
            if connection.device is device and connection.speaker is not None:
                connection.show(self.eggs.shown(connection.speaker))
        return {"device": device.name, "name": offered.name, "size": offered.size}

    def token_bearer(self, token: str, right: Right) -> Device:
        """The device whose request carries this token, where it has the right. Raises ``BadEggTokenError``."""
        device = self.eggs.tokens.redeem(token, self._devices.get)
        if not right.admits(caller_of(device)):
            raise BadEggTokenError
        return device

    def egg_transfer(self, device: Device) -> AbstractContextManager[EggTransfer]:
        """A transfer of an egg from or to a device, counted until the block ends. Raises ``RateLimitedError``."""
        return self.eggs.transfers.begun(device, self.may_carry_eggs)

    def may_carry_eggs(self, device: Device) -> bool:
        """True while it is registered here and may send and fetch eggs."""
        return self._devices.get(device.id) is device and EGGS.admits(caller_of(device))

    async def _run_workflow(self, connection: PhoneConnection, asked: RunWorkflow) -> None:
        device, session = connection.speaker, connection.session
        if device is None or session is None or connection.withholds(WORKFLOWS):
            return
        try:
            await self._workflows.from_phone(
                session, device, asked.action, asked.name, asked.files, asked.plays
            )
        except ReportableError as problem:
            text = problem.with_advice() if isinstance(problem, RefusedError) else str(problem)
            connection.show({"type": "refused", "event_id": "", "error": text})

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("work for a phone failed", exc_info=error)

    def _register(self, connection: PhoneConnection, name: str) -> Device:
        window = self._pairing.use()
        device = self._devices.add(
            connection.guest_print,
            window.name or name,
            scope=window.scope,
            user=window.user,
            seen_from=connection.address,
            tls=connection.over_tls,
            kind=window.kind,
            invited=window.invited,
            key=connection.key,
        )
        self._pairing.paired(device.shown())
        log.warning(
            "security: the phone %s (%s) was paired from %s", device.name, device.id[:16], connection.address
        )
        return device

    def _by_secret_alone(self, device: Device, address: str) -> None:
        """A stolen secret would come this way, so the owner hears of each new address."""
        if not self._devices.seen_by_socket(device, address):
            return
        log.warning("security: the phone %s resumes by its secret alone, from %s", device.name, address)
        self._notices.add(
            f"{device.name} came back by its secret alone, over a WebSocket from {address}.",
            f"If that was not you: rappd devices revoke {device.id[:8]}",
            kind="device",
            key=f"device:{device.id}",  # one for each phone: addresses are cheap
            subject=device.id,
        )

    def _asked(self, offer: Offer, client: str) -> CheckedOffer:
        """Checks who asks. A device that is unknown gets the same answer after the same work."""
        promise = proofs.unb64(offer.commit, 32)
        nonce = secrets.token_bytes(proofs.NONCE_BYTES)
        if offer.device:
            device = self._devices.get(offer.device)
            if device is None:
                raise UnknownDeviceError
            return CheckedOffer(device.id, promise, nonce, self._key, device, (proofs.unb64(device.secret),))
        window = self._pairing.window
        if window is None or not window.fits(offer.window, network_of(client)):
            raise WindowClosedError
        return CheckedOffer(window.id, promise, nonce, self._key, None, window.keys())

    def _make_room(self) -> None:
        """Ends the oldest connection without a proof, of the network that has the most of them."""
        pending = sorted((one for one in self.connections if one.unproven), key=lambda one: one.since)
        if len(pending) >= MOST_PENDING:
            (most, _), *_ = Counter(one.source for one in pending).most_common(1)
            next(one for one in pending if one.source == most).end("others wait")

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
            registered=asked.device.fingerprint if asked.device is not None and guest_print else b"",
        )
        self._make_room()
        connection = PhoneConnection(
            channel, handshake, self, client, asked.device, over_tls=asked.host.tls is not None
        )
        self.connections.add(connection)
        return connection
