"""The identity that this machine shows to others: TLS certificate, sealing key and node card."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from agents.storage.atomic_write import write_atomically
from envelopes.errors import BadCertificateError
from envelopes.identity.certificates import identity_of, make_certificate
from envelopes.identity.keys import IdentityKey
from envelopes.identity.node_card import NodeCard, introduce
from neighborhoods.auth.tls import TlsFiles
from rappd.daemon.home import Home
from twins.eggs.encryption import make_encryption_key, recipient_of


@dataclass(slots=True, frozen=True)
class NodeIdentity:
    """Files and bytes behind the listener for other machines. ``sealing_secret`` never leaves this machine."""

    tls: TlsFiles
    certificate: bytes
    sealing_secret: str
    sealing_recipient: str

    def introduction(self, identity: IdentityKey, name: str, port: int) -> NodeCard:
        """Returns the node card of this machine."""
        return introduce(identity, self.certificate, self.sealing_recipient, name, port)


def material(home: Home, identity: IdentityKey) -> NodeIdentity:
    """Reads it from ``keys/``; made at the first start, and anew when the identity is another. Blocks."""
    files = TlsFiles(home.keys / "machine.pem", home.keys / "machine-key.pem")
    der = _kept_certificate(files, identity)
    if der is None:
        made = make_certificate(identity, now=datetime.now(UTC))
        write_atomically(files.key, made.key_pem)
        write_atomically(files.certificate, made.certificate_pem)
        der = made.certificate_der
    path = home.keys / "sealing.txt"
    if not path.exists():
        write_atomically(path, make_encryption_key()[0].encode())
    secret = path.read_text().strip()
    return NodeIdentity(files, der, secret, recipient_of(secret))


def _kept_certificate(files: TlsFiles, identity: IdentityKey) -> bytes | None:
    import ssl

    try:
        der = ssl.PEM_cert_to_DER_cert(files.certificate.read_text())
        return der if files.key.exists() and identity_of(der) == identity.public else None
    except (OSError, ValueError, BadCertificateError):
        return None
