"""Gateways: a name of organism.yaml stands for a paired machine with that very key, or for nobody."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from envelopes.identity.keys import fingerprint_of
from neighborhoods.errors import KeyChangedError, NotPairedError
from neighborhoods.peer import Peer
from rappd.errors import NotFoundError
from rappd.federation.gateways import Gateways, fingerprint_in
from rappd.notices.notices import Notices
from rappd.organism.organism_in_force import OrganismInForce

PUBLIC = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32).public_key()
RAW = PUBLIC.public_bytes_raw()
KEY, OTHER = fingerprint_of(RAW), "ab" * 32


class Peers:
    """As much of a ``PeerStore`` as gateways ask."""

    def __init__(self, *peers: Peer) -> None:
        self.peers = peers

    def all(self) -> list[Peer]:
        return list(self.peers)

    def get(self, fingerprint: str) -> Peer | None:
        return next((one for one in self.peers if one.fingerprint == fingerprint), None)

    def listen(self, heard: Any) -> None:
        self.heard = heard


def peer(name: str, fingerprint: str, address: str = "") -> Peer:
    return Peer(fingerprint, name, "friend", b"", b"", "", (), 0, address=address)


def gateways(tmp_path: Path, entry: str, *peers: Peer) -> Gateways:
    (tmp_path / "organism.yaml").write_text(f"gateways:\n  - {entry}\n")
    organism = OrganismInForce(tmp_path)
    assert not organism.faults
    found: Any = Peers(*peers)
    return Gateways(organism, found, Notices())


@pytest.mark.parametrize(
    ("entry", "peers", "state", "do"),
    [
        (f"{{name: lab, fingerprint: {KEY}}}", [peer("pi", KEY)], "ready", ""),
        (f"{{name: lab, fingerprint: {KEY}}}", [], "not paired", "rappd peers pair lab --fingerprint"),
        (
            f'{{name: lab, fingerprint: {KEY}, remote_url: "wss://lab.example:7443/x"}}',
            [],
            "not paired",
            "rappd peers pair lab.example",
        ),
        (f"{{name: lab, fingerprint: {KEY}}}", [peer("lab", OTHER)], "another key", "rappd peers show lab"),
        (
            f'{{name: lab, fingerprint: {KEY}, remote_url: "https://10.0.0.5:7443"}}',
            [peer("pi", OTHER, "10.0.0.5:7443")],
            "another key",
            "rappd peers show pi",
        ),
        ("{name: lab, trusted_identity: lab.pem}", [peer("pi", KEY)], "no key", "lab.pem"),
    ],
    ids=["ready", "not paired", "not paired, by address", "name of another", "address of another", "no file"],
)
def test_a_gateway_is_the_paired_machine_with_that_key_alone(
    tmp_path: Path, entry: str, peers: list[Peer], state: str, do: str
) -> None:
    found = gateways(tmp_path, entry, *peers)
    [one] = found.all()
    assert (one.state == state and one.do.startswith(do)) or do in one.do
    assert (one.peer is not None) == (state == "ready")
    if state == "ready":
        assert found.peer("LAB").name == "pi" and found.fingerprint("lab") == KEY
    else:
        assert found.fingerprint("lab") is None
        with pytest.raises(KeyChangedError if state == "another key" else NotPairedError):
            found.peer("lab")
    with pytest.raises(NotFoundError):
        found.peer("nobody")


def test_another_key_is_told_loudly_and_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    found = gateways(tmp_path, f"{{name: lab, fingerprint: {KEY}}}", peer("lab", OTHER))
    found.look()
    found.look()
    assert caplog.text.count("security: the gateway lab is refused") == 1


@pytest.mark.parametrize(
    "content",
    [
        PUBLIC.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        base64.b64encode(RAW) + b"\n",
        RAW.hex().encode(),
    ],
    ids=["PEM", "base64", "hex"],
)
def test_a_key_file_holds_a_public_key(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lab.pem").write_bytes(content)
    assert fingerprint_in(tmp_path / "lab.pem") == KEY


@pytest.mark.parametrize(
    "content", [b"", b"-----BEGIN PUBLIC KEY-----\nxx", b"ab" * 31, b"\xff\xfe"], ids=repr
)
def test_anything_else_is_no_key(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "lab.pem").write_bytes(content)
    assert fingerprint_in(tmp_path / "lab.pem") is None
