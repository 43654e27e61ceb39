"""This machine's certificate and its key: made once, at the first question for them, and always a pair."""

from __future__ import annotations

import ssl
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Barrier

import pytest
from cryptography import x509

from envelopes.identity.certificates import identity_of, make_certificate
from envelopes.identity.keys import IdentityKey
from rappd.daemon.home import Home
from rappd.federation.node_identity import NodeIdentity, dialled_names, material


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "desk")
    made.create()
    return made


def loads(found: NodeIdentity) -> None:
    """Loads certificate and key, as a listener does."""
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(found.tls.certificate, found.tls.key)


def test_listeners_that_ask_at_once_get_the_same_pair(home: Home) -> None:
    identity, together = home.identity(), Barrier(4)

    def ask(_: int) -> NodeIdentity:
        together.wait(100)
        return material(home, identity)

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(ask, range(4)))
    assert len({(one.certificate, one.sealing_secret) for one in found}) == 1
    loads(found[0])


@pytest.mark.parametrize("key", ["another", "no key"])
def test_certificate_whose_key_was_exchanged_is_made_anew(home: Home, key: str) -> None:
    identity = home.identity()
    before = material(home, identity)
    other = make_certificate(identity, now=datetime.now(UTC))
    before.tls.key.write_bytes(other.key_pem if key == "another" else b"-----BEGIN PRIVATE KEY-----")
    found = material(home, identity)
    loads(found)
    assert found.certificate != before.certificate
    assert found.tls.key.stat().st_mode & 0o777 == 0o600
    assert material(home, identity) == found, "and kept"


def test_certificate_of_another_identity_is_made_anew(home: Home) -> None:
    """Peers refuse it: a machine whose identity key was brought back from a backup has an older certificate."""
    before = material(home, home.identity())
    other = IdentityKey.generate()
    found = material(home, other)
    loads(found)
    assert found.certificate != before.certificate
    assert identity_of(found.certificate) == other.public


def test_the_certificate_names_this_machine_and_no_address(home: Home) -> None:
    found = x509.load_der_x509_certificate(material(home, home.identity()).certificate)
    names = found.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == dialled_names()
    assert names.get_values_for_type(x509.IPAddress) == []
    assert dialled_names()[1].endswith(".local")
