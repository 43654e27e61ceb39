"""Registered devices: ``devices.json`` in the home, readable by its owner alone."""

from __future__ import annotations

import logging
import secrets
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NotRequired, TypedDict

import msgspec

from agents.storage.atomic_write import write_atomically
from envelopes.default_user import DEFAULT_USER_GUID
from rappd.dispatch.rights import DEVICE
from rappd.errors import AmbiguousError, RefusedError, StoreError, UsageProblemError
from rappd.sessions.participants import OWNER, SCOPES, WORKFLOWS
from rappd.store.connections import in_words
from rappd.tether import proofs
from rappd.tether.errors import TetherError

log = logging.getLogger(__name__)

EGGS, NOTICES, APPROVE = DEVICE("EGG"), DEVICE("NOTICES"), DEVICE("APPROVE")
TALK = DEVICE("HELP.*")
"""The right to conversations of its own."""
IDLE_DAYS = 90
_SEEN_EVERY = 60.0
_ADDRESSES = 32

Kind = Literal["mine", "guest"]
KINDS: tuple[Kind, ...] = ("mine", "guest")
"""The owner's own phones, with the owner's memory and conversations, and those of guests, with their own."""
_MEMORIES = uuid.UUID("9a4e1c52-6f0b-4c1e-8d57-0b6c3f1f7a10")
"""The namespace (RFC 9562 §5.5) in which a device's id becomes the user whose memory is its own."""


class DeviceRow(TypedDict):
    """A registered phone, without its secret; moments are seconds since 1970."""

    id: str
    name: str
    kind: Kind
    invited: bool
    scope: str
    workflows: bool
    eggs: bool
    notices: bool
    approve: bool
    tls: bool
    user: str
    created_at: float
    seen_at: float
    seen_from: str
    session: str


class WindowState(TypedDict):
    """The window in which a phone is paired: open with its links, with digits to compare, or over."""

    state: str
    id: NotRequired[str]
    digits: NotRequired[str]
    name: NotRequired[str]
    remaining: NotRequired[float]
    visited: NotRequired[bool]
    code: NotRequired[str]
    links: NotRequired[list[str]]
    short_links: NotRequired[list[str]]
    port: NotRequired[int]
    port_taken: NotRequired[int]
    """The port that was wanted, where another one had to do; else 0."""
    certificate: NotRequired[str]
    device: NotRequired[DeviceRow]
    """The phone, once it is paired."""


class ConnectedDevice(DeviceRow):
    """The same with its connection: ``way`` is webrtc, websocket or ""."""

    connected: bool
    way: str


class Device(msgspec.Struct, kw_only=True):
    """One phone. ``id`` is the hex SHA-256 fingerprint of its certificate, or random for one that pairs by WebSocket.

    ``secret`` is base64url; ``at`` times are seconds since 1970. ``certificate`` is False where DTLS cannot prove it.
    ``sockets_from`` are the addresses from which it came by its secret alone, the latest last.
    """

    id: str
    name: str
    secret: str
    kind: Kind = "guest"
    invited: bool = True
    """True for one that joins the session of the phones; those registered before there were kinds stay in it."""
    scope: str = "talk"
    workflows: bool = False
    eggs: bool = False
    notices: bool = False
    approve: bool = False
    """True for a phone that may answer what waits for the owner's yes, over https."""
    tls: bool = False
    """True for a phone that was paired over https: nobody could change its page's script on the way."""
    version: int = 0
    """Another one after each pairing and each change of rights: older tokens count no longer."""
    user: str = ""
    certificate: bool = True
    key: str = ""
    """A public key of P-256 (its point in base64url) that the browser made; it proves the phone over a WebSocket."""
    created_at: float
    seen_at: float = 0.0
    seen_from: str = ""
    session: str = ""
    sockets_from: list[str] = []

    @property
    def fingerprint(self) -> bytes:
        """The fingerprint of its certificate; empty where it has none."""
        return bytes.fromhex(self.id) if self.certificate else b""

    @property
    def caps(self) -> tuple[str, ...]:
        """Capability texts of what it may do."""
        rights = (
            (WORKFLOWS, self.workflows),
            (EGGS, self.eggs),
            (NOTICES, self.notices),
            (APPROVE, self.approve),
        )
        return SCOPES[self.scope] + tuple(right.scope for right, given in rights if given)

    @property
    def is_mine(self) -> bool:
        """True for the owner's own phone."""
        return self.kind == "mine"

    @property
    def in_session(self) -> bool:
        """True where it joins the session of the phones."""
        return self.invited or self.is_mine

    @property
    def user_guid(self) -> str:
        """The user whose memory and conversations count while it talks: the owner's, or those of this phone alone."""
        return self.user or (DEFAULT_USER_GUID if self.is_mine else str(uuid.uuid5(_MEMORIES, self.id)))

    def shown(self) -> DeviceRow:
        """As lists show it, without its secret."""
        return {
            "id": self.id, "name": self.name, "kind": self.kind, "invited": self.in_session, "scope": self.scope,
            "workflows": self.workflows, "eggs": self.eggs, "notices": self.notices, "approve": self.approve,
            "tls": self.tls,
            "user": "shared" if self.user_guid == DEFAULT_USER_GUID else self.user_guid, "created_at": self.created_at, "seen_at": self.seen_at,
            "seen_from": self.seen_from, "session": self.session,
        }  # fmt: skip


class EggOffer(TypedDict):
    """An egg that lies there for a phone."""

    device: str
    name: str
    size: int


class PhonesSummary(TypedDict):
    """The listener for phones in numbers; ``port_taken`` is the port that was wanted, where another one had to do."""

    registered: int
    connected: int
    port: int
    port_taken: int
    addresses: list[str]
    webrtc: bool


def by_secret_alone(device: Device) -> Device:
    """The device as it counts over a WebSocket, where its secret alone speaks for it: it talks, as a guest's does."""
    return msgspec.structs.replace(
        device,
        kind="guest",
        invited=device.in_session,
        workflows=False,
        eggs=False,
        notices=False,
        approve=False,
        user="" if device.is_mine else device.user,
    )


def by_key(device: Device) -> Device:
    """The device as it counts over a WebSocket on which its key speaks for it: it talks, with its own memory."""
    return msgspec.structs.replace(device, workflows=False, eggs=False, notices=False, approve=False)


def over_plain_http(device: Device) -> Device:
    """The device as it counts where its page came over plain http, and may have been changed on the way: no approvals."""
    return msgspec.structs.replace(device, approve=False)


def rights_of(kind: Kind) -> dict[str, bool]:
    """The rights of a phone of that kind beside talking, until its owner says otherwise."""
    return dict.fromkeys(("workflows", "eggs", "notices"), kind == "mine")


def may_talk(device: Device) -> bool:
    """True for a device that may ask participants."""
    return bool(SCOPES[device.scope])


class _Content(msgspec.Struct):
    devices: list[Device]


class DeviceRegistry:
    """All devices of this machine. Writes the file at every change; small and rarely changed."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        """Raises ``StoreError`` when the file is damaged: then no device is let in."""
        self._path = path
        self._clock = clock
        try:
            content = msgspec.json.decode(path.read_bytes(), type=_Content)
        except FileNotFoundError:
            content = _Content([])
        except (OSError, msgspec.DecodeError) as error:
            raise StoreError(f"{path} cannot be read.", do="Delete it, and pair your phones anew.") from error
        oldest = clock() - IDLE_DAYS * 86_400
        self._devices = {one.id: one for one in content.devices if max(one.seen_at, one.created_at) > oldest}
        self._shut_out: set[str] = set()
        """Ids of removed devices that the file still names."""

    def all(self) -> list[Device]:
        """Every device, the newest first."""
        return sorted(self._devices.values(), key=lambda one: -one.created_at)

    def get(self, id: str) -> Device | None:
        """The device of that id; None for one that was removed, also where the file still names it."""
        return None if id in self._shut_out else self._devices.get(id)

    def find(self, name: str) -> Device:
        """The device of that name, or whose id begins so. Raises ``no_such_device``, ``AmbiguousError``."""
        named = [one for one in self._devices.values() if one.name.casefold() == name.casefold()]
        found = named or [
            one for one in self._devices.values() if len(name) >= 4 and one.id.startswith(name.lower())
        ]
        if not found:
            raise TetherError(
                f'No device is called "{name[:40]}".', do="rappd devices list", code="no_such_device"
            )
        if len(found) > 1:
            raise AmbiguousError(f'"{name[:40]}" fits several devices.', do="Give the start of its id.")
        return found[0]

    def add(
        self,
        guest_print: bytes,
        name: str,
        *,
        scope: str,
        user: str,
        seen_from: str,
        tls: bool = False,
        kind: Kind = "guest",
        invited: bool = False,
        key: str = "",
    ) -> Device:
        """Registers a device under a name that no other has. ``guest_print`` is empty without a certificate.

        ``tls``: it pairs over https. ``key``: the public key that it proved, if it has one.

        Raises ``StoreError``: then it is not registered.
        """
        used_names = {one.name.casefold() for one in self._devices.values() if one.id != guest_print.hex()}
        used_names.add(OWNER.casefold())
        free = next(
            one
            for one in (name, *(f"{name} {n}" for n in range(2, 1000)))
            if one.casefold() not in used_names
        )
        rights = rights_of(kind)
        device = Device(
            id=guest_print.hex() or secrets.token_hex(32), name=free,
            secret=proofs.b64(secrets.token_bytes(proofs.SECRET_BYTES)), scope=scope, user=user,
            kind=kind, invited=invited, workflows=rights["workflows"], eggs=rights["eggs"], notices=rights["notices"],
            approve=kind == "mine" and tls, certificate=bool(guest_print), tls=tls, key=key,
            version=secrets.randbits(48), created_at=self._clock(), seen_at=self._clock(), seen_from=seen_from,
            sockets_from=[] if guest_print or key else [seen_from],
        )  # fmt: skip
        before = self._devices.get(device.id)
        was_shut_out = device.id in self._shut_out
        self._shut_out.discard(device.id)
        self._devices[device.id] = device
        try:
            self._write()
        except StoreError:
            if was_shut_out:
                self._shut_out.add(device.id)
            del self._devices[device.id]
            if before is not None:
                self._devices[device.id] = before
            raise
        return device

    def seen(self, device: Device, address: str, session: str) -> bool:
        """Notes that it is here; True when it came from a new address."""
        moved = address != device.seen_from
        if moved or session != device.session or self._clock() - device.seen_at > _SEEN_EVERY:
            device.seen_at, device.seen_from, device.session = self._clock(), address, session
            self._write_if_possible()
        return moved

    def seen_by_socket(self, device: Device, address: str) -> bool:
        """Notes that it came over a WebSocket; True at the first time from that address."""
        if address in device.sockets_from:
            return False
        device.sockets_from = [*device.sockets_from[1 - _ADDRESSES :], address]
        self._write_if_possible()
        return True

    def rename(self, device: Device, name: str) -> None:
        """Calls it something else. Raises ``UsageProblemError``, ``StoreError``."""
        plain = " ".join(name.split())[:40]
        if not plain or not plain.isprintable():
            raise UsageProblemError("That is no name.", do="Use letters and digits.")
        if plain.casefold() == OWNER.casefold() or any(
            one is not device and one.name.casefold() == plain.casefold() for one in self._devices.values()
        ):
            raise UsageProblemError(f'Another device is called "{plain}".', do="Choose another name.")
        self._change(device, name=plain)

    def allow(
        self,
        device: Device,
        scope: str,
        *,
        workflows: bool,
        eggs: bool = False,
        notices: bool = False,
        user: str | None = None,
        kind: Kind | None = None,
        invited: bool | None = None,
    ) -> None:
        """Changes what it may do. Raises ``UsageProblemError``, ``StoreError``."""
        self._change(
            device, scope=checked_scope(scope), workflows=workflows, eggs=eggs, notices=notices,
            version=device.version + 1, user=device.user if user is None else user,
            kind=kind or device.kind, invited=device.invited if invited is None else invited,
        )  # fmt: skip

    def let_approve(self, device: Device, approve: bool) -> None:
        """Lets it answer what waits, which it sees then, or no longer. Raises ``RefusedError``, ``StoreError``."""
        if approve and not device.is_mine:
            raise RefusedError(
                f"{device.name} is a guest's: only your own phone answers for you.",
                do=f"rappd devices scopes {device.name} --mine",
            )
        if approve and not device.tls:
            raise RefusedError(
                f"{device.name} was not paired over https: its page could have been changed on the way.",
                do="rappd config set tether.tls on, restart rappd, remove the phone and pair it anew.",
            )
        notices = device.notices or approve
        self._change(device, approve=approve, notices=notices, version=device.version + 1)

    def remove(self, device: Device) -> None:
        """Trusts it no more, from this moment. Raises ``StoreError`` where that holds only until the next start.

        Then it stays on the list, so that it can be removed again; the next change that is written removes it, too.
        """
        self._shut_out.add(device.id)
        try:
            self._write()
        except StoreError as problem:
            why = problem.remedy or "See to it that the file can be written"
            raise StoreError(
                f"{device.name} is shut out until rappd starts again. {problem}",
                do=f"{why}, then remove it once more.",
            ) from problem

    def _change(self, device: Device, **fields: object) -> None:
        """Gives a device these fields; all as before where they cannot be written down, which raises ``StoreError``."""
        before = {name: getattr(device, name) for name in fields}
        for name, value in fields.items():
            setattr(device, name, value)
        try:
            self._write()
        except StoreError:
            for name, value in before.items():
                setattr(device, name, value)
            raise

    def _write_if_possible(self) -> None:
        """A phone may come back while the disk is full."""
        try:
            self._write()
        except StoreError as problem:
            log.warning("it cannot be written down that a phone came: %s", problem)

    def _write(self) -> None:
        kept = {id: one for id, one in self._devices.items() if id not in self._shut_out}
        with in_words(self._path):
            write_atomically(self._path, msgspec.json.encode(_Content(list(kept.values()))))
        self._devices = kept
        self._shut_out.clear()


def checked_scope(scope: str) -> str:
    """``scope``, if it is one. Raises ``UsageProblemError``."""
    if scope not in SCOPES:
        raise UsageProblemError(f'"{scope[:40]}" is no scope.', do=f"One of: {', '.join(SCOPES)}.")
    return scope


def checked_kind(kind: str) -> Kind:
    """``kind``, if it is one. Raises ``UsageProblemError``."""
    for known in KINDS:
        if kind == known:
            return known
    raise UsageProblemError(f'"{kind[:40]}" is no kind of phone.', do=f"One of: {', '.join(KINDS)}.")
