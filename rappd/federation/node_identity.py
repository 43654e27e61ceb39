"""The identity that this machine shows to others: TLS certificate, sealing key and node card."""

from __future__ import annotations

import logging
import socket
import threading
from dataclasses import dataclass
from datetime import UTC, datetime

from agents.storage.atomic_write import write_atomically
from envelopes.errors import BadCertificateError
from envelopes.identity.certificates import identity_of, make_certificate
from envelopes.identity.keys import IdentityKey
from envelopes.identity.node_card import NodeCard, introduce
from neighborhoods.auth.tls import TlsFiles
from rappd.daemon.home import Home
from rappd.errors import StoreError
from twins.eggs.encryption import make_encryption_key, recipient_of
from twins.workspace.rappid import label

log = logging.getLogger(__name__)

_making = threading.Lock()


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
    """Reads it from ``keys/``; made at the first start, and anew when the identity is another. Blocks.

    Any thread may call it. A certificate whose key is another one counts as none. Raises ``StoreError``.
    """
    with _making:  # the listeners for machines and for phones ask at the same time, at a first start too
        try:
            return _material(home, identity)
        except (OSError, ValueError) as problem:
            raise StoreError(
                f"This machine's key or certificate in {home.keys} cannot be used: {problem}",
                do="Make that folder and its files yours alone, then: rappd start",
            ) from problem


def _material(home: Home, identity: IdentityKey) -> NodeIdentity:
    files = TlsFiles(home.keys / "machine.pem", home.keys / "machine-key.pem")
    der = _kept_certificate(files, identity)
    if der is None:
        made = make_certificate(identity, now=datetime.now(UTC), names=dialled_names())
        write_atomically(files.key, made.key_pem)
        write_atomically(files.certificate, made.certificate_pem)
        der = made.certificate_der
    path = home.keys / "sealing.txt"
    if not path.exists():
        write_atomically(path, make_encryption_key()[0].encode())
    secret = path.read_text().strip()
    return NodeIdentity(files, der, secret, recipient_of(secret))


def dialled_names() -> list[str]:
    """The names by which programs elsewhere can dial this machine and find it in its certificate.

    No addresses: they change, and every stranger reads them.
    """
    host = label(socket.gethostname().split(".")[0], otherwise="localhost")
    return list(dict.fromkeys((host, f"{host}.local", "localhost")))


def _kept_certificate(files: TlsFiles, identity: IdentityKey) -> bytes | None:
    import ssl

    try:
        der = ssl.PEM_cert_to_DER_cert(files.certificate.read_text())
        if not files.key.exists() or identity_of(der) != identity.public:
            return None
    except (OSError, ValueError, BadCertificateError):
        return None
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(files.certificate, files.key)
    except ssl.SSLError:
        log.warning(
            "security: the certificate in %s does not fit its key; both are made anew", files.key.parent
        )
        return None
    return der
