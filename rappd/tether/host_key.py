"""The machine's P-256 key as the handshake uses it: signs in the daemon, and never leaves it."""

from __future__ import annotations

import hashlib
import ssl

from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, EllipticCurvePrivateKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

from envelopes.identity.keys import IdentityKey
from neighborhoods.auth.tls import TlsFiles
from rappd.daemon.home import Home
from rappd.federation.node_identity import material
from rappd.tether.handshake import HostProof


class HostKey:
    """``public`` is its DER SubjectPublicKeyInfo, ``proof`` what ``auth_ok`` carries.

    ``tls`` serves https with it, where that is asked for; ``fingerprint`` is its certificate's, as browsers show it.
    """

    def __init__(self, home: Home, identity: IdentityKey, *, tls: bool = False) -> None:
        """Blocks on the disk. Raises ``StoreError``, ``ValueError``."""
        found = material(home, identity)
        key = serialization.load_pem_private_key(found.tls.key.read_bytes(), password=None)
        if not isinstance(key, EllipticCurvePrivateKey):
            raise ValueError("the machine's key is no P-256 key")
        self._key = key
        self.public = key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.proof = HostProof(self._sign, found.certificate)
        self.fingerprint = hashlib.sha256(found.certificate).digest().hex(":").upper()
        self.tls = _context(found.tls) if tls else None

    def _sign(self, digest: bytes) -> bytes:
        """ECDSA with SHA-256 as 64 bytes, r and s, which is how browsers verify it."""
        r, s = decode_dss_signature(self._key.sign(digest, ECDSA(hashes.SHA256())))
        return r.to_bytes(32, "big") + s.to_bytes(32, "big")


def _context(files: TlsFiles) -> ssl.SSLContext:
    """For browsers, which are asked for no certificate of theirs."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.certificate, files.key)
    return context
