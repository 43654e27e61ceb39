"""Derivations of the tether handshake ``rapp-tether/2``: commitment, transcript, proofs, six digits, links.

Pure functions of bytes. The phone's page computes the same in JavaScript; ``docs/wire.md`` has a vector for each.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

NONCE_BYTES = 16
SECRET_BYTES = 32
SIGNATURE_BYTES = 64
HOST_PIN_BYTES = 16
CODE_LENGTH = 12
"""Characters of a typed code: 60 bits, so that nobody finds it by trying while a window is open."""

_CONTEXT = b"rapp-tether/2"
_CODE_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's: none looks like another
_LOOKS_LIKE = str.maketrans("ILO", "110")


def b64(content: bytes) -> str:
    """Base64url without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def unb64(text: object, length: int | None = None) -> bytes:
    """The bytes of base64url text. Raises ``ValueError`` for anything else, or another length."""
    if not isinstance(text, str) or len(text) > 4096 or not re.fullmatch(r"[A-Za-z0-9_-]*", text):
        raise ValueError("no base64url text")
    try:
        found = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError("no base64url text") from error
    if length is not None and len(found) != length:
        raise ValueError(f"{len(found)} bytes, not {length}")
    return found


def commitment(nonce: bytes) -> bytes:
    """The guest's promise of its nonce, given before it sees the host's: SHA-256, 32 bytes."""
    return hashlib.sha256(_CONTEXT + b" commit" + nonce).digest()


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything that both sides saw of one connection.

    ``host_print`` and ``guest_print`` are the SHA-256 DTLS fingerprints, 32 bytes each; empty over a WebSocket.
    ``host_key`` is the DER SubjectPublicKeyInfo of the machine's P-256 key. ``subject`` is the window's id, or the
    device's when it resumes.
    """

    subject: str
    host_print: bytes
    guest_print: bytes
    host_nonce: bytes
    guest_nonce: bytes
    host_key: bytes

    def digest(self) -> bytes:
        """SHA-256 over the parts, each with its length in four bytes before it."""
        running = hashlib.sha256(_CONTEXT)
        for part in (
            self.subject.encode(), self.host_print, self.guest_print, self.host_nonce, self.guest_nonce, self.host_key,
        ):  # fmt: skip
            running.update(len(part).to_bytes(4, "big") + part)
        return running.digest()


def proof(key: bytes, side: str, digest: bytes) -> bytes:
    """HMAC-SHA-256 with the one-time token or the device's secret; ``side`` is ``guest`` or ``host``."""
    return hmac.new(key, side.encode() + digest, hashlib.sha256).digest()


def key_text(digest: bytes) -> bytes:
    """The octets that a phone signs with a key of its own, where its origin gives it one."""
    return _CONTEXT + b" key" + digest


def same(one: bytes, other: bytes) -> bool:
    """Compares two proofs in constant time."""
    return hmac.compare_digest(one, other)


def six_digits(digest: bytes) -> str:
    """The number that both screens show, as ``482 913``."""
    found = hashlib.sha256(_CONTEXT + b" sas" + digest).digest()
    number = int.from_bytes(found[:4], "big") % 1_000_000
    return f"{number // 1000:03} {number % 1000:03}"


def host_pin(host_key: bytes) -> bytes:
    """The part of the host key's SHA-256 that a QR code carries."""
    return hashlib.sha256(host_key).digest()[:HOST_PIN_BYTES]


def new_code() -> str:
    """A code to type, in groups of four."""
    letters = "".join(secrets.choice(_CODE_LETTERS) for _ in range(CODE_LENGTH))
    return "-".join(letters[at : at + 4] for at in range(0, CODE_LENGTH, 4))


def code_key(code: str) -> bytes:
    """The proof key of a typed code; case, spaces and dashes do not matter, nor do I, L and O."""
    plain = re.sub(r"[\s-]", "", code).upper().translate(_LOOKS_LIKE)
    return hashlib.sha256(_CONTEXT + b" code" + plain.encode()).digest()


def link(page: str, window: str, token: bytes, pin: bytes) -> str:
    """The text of the QR code; ``page`` is the short link. What follows ``#`` never reaches a server."""
    return f"{page}#v=2&s={window}&t={b64(token)}&k={b64(pin)}"
