"""Gateways: names of ``organism.yaml`` for paired machines. The file never makes trust: each key is compared with the peer's."""

from __future__ import annotations

import base64
import binascii
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from agents.storage.safe_open import first_bytes
from envelopes.identity.keys import fingerprint_of
from neighborhoods.errors import KeyChangedError, NotPairedError
from neighborhoods.peer import Peer
from neighborhoods.peer_store import PeerStore
from rappd.errors import NotFoundError
from rappd.notices.notices import Notices
from rappd.organism.organism import Gateway
from rappd.organism.organism_in_force import OrganismInForce

log = logging.getLogger(__name__)

State = Literal["ready", "not paired", "another key", "no key"]
_RAW = 32


class GatewayState(msgspec.Struct, frozen=True):
    """A gateway as it is now. ``peer`` is the machine behind it where it is ready; ``do`` what makes it so."""

    gateway: Gateway
    state: State
    peer: Peer | None = None
    do: str = ""


class Gateways:
    """The gateways of one home. All calls come from the event loop."""

    def __init__(self, organism: OrganismInForce, peers: PeerStore, notices: Notices) -> None:
        self._organism, self._peers, self._notices = organism, peers, notices
        self._keys: dict[str, str | None] = {}
        self._refused: set[str] = set()
        organism.on_change(self.look)
        peers.listen(lambda what, peer: self.look())

    def look(self) -> None:
        """Compares every key anew. A gateway with another key is told to the owner, once."""
        self._keys.clear()
        now = {one.gateway.name for one in self.all() if one.state == "another key"}
        for name in now - self._refused:
            log.warning("security: the gateway %s is refused: another key is paired under its name", name)
            self._notices.add(
                f"The gateway {name} is refused: the machine that is paired has another key than organism.yaml says.",
                "rappd organism show",
                kind="gateway",
                key=f"gateway:{name}",
            )
        for name in self._refused - now:
            self._notices.settle(f"gateway:{name}")
        self._refused = now

    def all(self) -> list[GatewayState]:
        """Every gateway of the file, in its order."""
        return [self._state(one) for one in self._organism.current.gateways]

    def names(self) -> Sequence[str]:
        """The names of those that can be asked."""
        return [one.gateway.name for one in self.all() if one.peer is not None]

    def fingerprint(self, name: str) -> str | None:
        """The key of the machine behind a gateway that is ready; None for any other name."""
        wanted = name.casefold()
        found = next((one for one in self.all() if one.gateway.name.casefold() == wanted), None)
        return found.peer.fingerprint if found is not None and found.peer is not None else None

    def peer(self, name: str) -> Peer:
        """The machine behind a gateway. Raises ``NotFoundError``, ``NotPairedError``, ``KeyChangedError``."""
        found = next((one for one in self.all() if one.gateway.name.casefold() == name.casefold()), None)
        if found is None:
            raise NotFoundError(f"organism.yaml names no gateway “{name[:60]}”.", do="rappd organism show")
        if found.peer is not None:
            return found.peer
        if found.state == "another key":
            raise KeyChangedError(
                f"The gateway {found.gateway.name} has another key than is paired.", do=found.do
            )
        raise NotPairedError(f"The gateway {found.gateway.name} is {found.state}.", do=found.do)

    def _state(self, gateway: Gateway) -> GatewayState:
        key = self._key(gateway)
        if key is None:
            return GatewayState(
                gateway, "no key", do=f"Put the machine's public key into {gateway.trusted_identity}."
            )
        peer = self._peers.get(key)
        if peer is not None:
            return GatewayState(gateway, "ready", peer)
        if (other := self._other(gateway)) is not None:
            do = f"rappd peers show {other.name} says its key; write that one, or pair the other machine."
            return GatewayState(gateway, "another key", do=do)
        address = _host(gateway) or gateway.name
        return GatewayState(gateway, "not paired", do=f"rappd peers pair {address} --fingerprint {key}")

    def _other(self, gateway: Gateway) -> Peer | None:
        """The paired machine that has the gateway's name or address, with a key of its own."""
        host, name = _host(gateway), gateway.name.casefold()
        for peer in self._peers.all():
            if peer.name.casefold() == name or (host and peer.address.rpartition(":")[0] == host):
                return peer
        return None

    def _key(self, gateway: Gateway) -> str | None:
        if gateway.fingerprint is not None:
            return gateway.fingerprint
        file = str(gateway.trusted_identity)
        if file not in self._keys:
            self._keys[file] = fingerprint_in(self._organism.path.parent / file)
        return self._keys[file]


def fingerprint_in(path: Path) -> str | None:
    """The fingerprint of the Ed25519 public key in a file: PEM, or 32 bytes in base64 or hex. None for anything else."""
    try:
        content = first_bytes(path, 4096).strip()
    except OSError:
        return None
    if content.startswith(b"-----BEGIN PUBLIC KEY-----"):
        try:
            key: Any = load_pem_public_key(content)
        except ValueError:
            return None
        return fingerprint_of(key.public_bytes_raw()) if isinstance(key, Ed25519PublicKey) else None
    for read in (bytes.fromhex, base64.b64decode):
        try:
            raw = read(content.decode())
        except (ValueError, binascii.Error):
            continue
        if len(raw) == _RAW:
            return fingerprint_of(raw)
    return None


def _host(gateway: Gateway) -> str:
    return urlsplit(gateway.remote_url or "").hostname or ""
