"""The one key: an Ed25519 identity, and its fingerprint."""

from __future__ import annotations

import hashlib

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from envelopes.errors import BadKeyError


class IdentityKey:
    """A node's key. ``fingerprint`` (64 hex, SHA-256 of the raw public key) is the node id."""

    def __init__(self, private: Ed25519PrivateKey) -> None:
        self._private = private
        self.public = private.public_key().public_bytes_raw()
        self.fingerprint = fingerprint_of(self.public)

    @classmethod
    def generate(cls) -> IdentityKey:
        """A fresh key."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_pem(cls, pem: bytes) -> IdentityKey:
        """The key in a PKCS8 PEM. Raises ``BadKeyError``."""
        try:
            private = serialization.load_pem_private_key(pem, password=None)
        except (ValueError, TypeError) as error:
            raise BadKeyError(
                "The identity key cannot be read.", do="Restore keys/ from a backup."
            ) from error
        if not isinstance(private, Ed25519PrivateKey):
            raise BadKeyError("The identity key is not an Ed25519 key.", do="Restore keys/ from a backup.")
        return cls(private)

    def to_pem(self) -> bytes:
        """PKCS8 PEM, unencrypted: for a file that only its owner reads."""
        return self._private.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )

    def sign(self, message: bytes) -> bytes:
        """The 64-byte signature over ``message``."""
        return self._private.sign(message)


def fingerprint_of(public: bytes) -> str:
    """SHA-256 of a raw 32-byte public key, 64 lower-case hex digits."""
    return hashlib.sha256(public).hexdigest()


def verify(public: bytes, signature: bytes, message: bytes) -> bool:
    """True when ``signature`` over ``message`` was made by the key ``public`` (32 raw bytes)."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True
