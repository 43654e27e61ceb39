"""Signatures of the page's requests: the signed text, its check, and that each is good once."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
import time
from collections.abc import Callable
from typing import Any

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ec import ECDSA, SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from envelopes.errors import ReportableError

WINDOW_MS = 60_000
"""A signed request arrives within a minute: page and daemon are on one machine, and browsers make requests wait."""

MOST_NONCES = 20_000
"""Kept for one key and minute: 300 requests a second, far more than a page sends."""

VERSION = "rappd-request-1"

_POINT = re.compile(r"B[A-Za-z0-9_-]{86}")  # 65 octets that begin with 4
_HEADER = re.compile(
    r"(?P<at>[1-9][0-9]{12,15})\.(?P<nonce>[A-Za-z0-9_-]{22})"
    r"\.(?P<body>sha256=[A-Za-z0-9_-]{43}|length=(?:0|[1-9][0-9]{0,15}))\.(?P<signature>[A-Za-z0-9_-]{86})"
)


class NotSignedError(ReportableError):
    """A request of a good session whose signature is not of this request, or not of that session's key."""

    code = "not_signed"
    status = 403
    exit_code = 5

    def __init__(self) -> None:
        super().__init__("This request is not signed by the key of the operator's session.", do="rappd open")


class LateSignatureError(ReportableError):
    """A signature of another time; the page signs anew by the daemon's clock, which is ``now``."""

    code = "late_signature"
    status = 403
    exit_code = 5

    def __init__(self, now: int) -> None:
        super().__init__("This request was signed at another time.", do="Load the page anew.")
        self.now = now

    def as_json(self) -> dict[str, Any]:
        return {**super().as_json(), "now": self.now}


class UsedSignatureError(ReportableError):
    """A request that was sent before; it is done once."""

    code = "used_signature"
    status = 403
    exit_code = 5

    def __init__(self) -> None:
        super().__init__("This request was sent before. It is done once.", do="Look what came of it.")


class TooManySignaturesError(ReportableError):
    """More signed requests than are remembered: refused, since a forgotten one could be sent again."""

    code = "too_many"
    status = 429

    def __init__(self) -> None:
        super().__init__("That was tried too often.", do="Wait two minutes.")


class Signature(msgspec.Struct, frozen=True):
    """The signature of a request, as its header or link carries it.

    ``body`` is ``sha256=`` and the hash of the body's bytes, or ``length=`` and how many there are.
    """

    at: int
    nonce: str
    body: str
    octets: bytes

    @classmethod
    def parse(cls, text: str) -> Signature:
        """Raises ``NotSignedError``."""
        found = _HEADER.fullmatch(text)
        if found is None:
            raise NotSignedError
        return cls(int(found["at"]), found["nonce"], found["body"], _octets(found["signature"]))

    @property
    def length(self) -> int | None:
        """The signed length of the body where its hash is not signed."""
        return int(self.body.removeprefix("length=")) if self.body.startswith("length=") else None


class RequestSignatures:
    """Checks signatures, and remembers each that was good until its time has passed.

    The clock goes by the monotonic one from the start on: a clock that is set back makes nothing good a second
    time. What was signed before the start is refused, since a former process may have taken it.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        before = clock()
        self._offset = (
            time.time() - before
        )  # a pause in between puts this clock ahead, never behind a browser's
        self._started = self.now
        self._nonces: dict[str, _Nonces] = {}

    @property
    def now(self) -> int:
        """The time in ms by which signatures are judged."""
        return int((self._clock() + self._offset) * 1000)

    def check(
        self,
        signature: Signature,
        *,
        public: str,
        method: str,
        host: str,
        target: str,
        content_type: str = "",
        window: int = WINDOW_MS,
    ) -> None:
        """Takes a signature, once.

        ``target`` is the request's path and query, byte for byte. Raises ``NotSignedError``,
        ``LateSignatureError``, ``UsedSignatureError`` and ``TooManySignaturesError``. Only what the key signed is
        remembered, so nobody else fills the memory.
        """
        now = self.now
        if not max(now - window, self._started) <= signature.at <= now:
            raise LateSignatureError(now)
        text = canonical(
            method=method,
            host=host,
            target=target,
            at=signature.at,
            nonce=signature.nonce,
            content_type=content_type,
            body=signature.body,
        )
        if not signed_by(public, signature.octets, text):
            raise NotSignedError
        for key in [key for key, nonces in self._nonces.items() if nonces.end < now]:
            del self._nonces[key]
        nonces = self._nonces.setdefault(f"{public} {window}", _Nonces(window, now))
        nonces.take(signature.nonce, now)


class _Nonces:
    """The nonces of one key. Two generations: each is kept for at least one window, at most two."""

    def __init__(self, window: int, now: int) -> None:
        self._window = window
        self._turned = now
        self._young: set[str] = set()
        self._old: set[str] = set()

    @property
    def end(self) -> int:
        """The time after which none is needed."""
        return self._turned + 2 * self._window

    def take(self, nonce: str, now: int) -> None:
        while now > self._turned + self._window:
            self._old, self._young = self._young, set()
            self._turned += self._window
        if nonce in self._young or nonce in self._old:
            raise UsedSignatureError
        if len(self._young) >= MOST_NONCES:
            raise TooManySignaturesError
        self._young.add(nonce)


def canonical(
    *, method: str, host: str, target: str, at: int, nonce: str, content_type: str, body: str
) -> bytes:
    """The text that is signed: one line for each part, none of which can hold a line's end."""
    lines = (VERSION, method, host, target, str(at), nonce, content_type, body)
    return "\n".join(lines).encode("utf-8", "surrogateescape")


def body_hash(raw: bytes) -> str:
    """The ``body`` of a signature for these bytes."""
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(raw).digest()).decode().rstrip("=")


def is_public_key(text: str) -> bool:
    """Tests whether ``text`` is a point of P-256, uncompressed, in base64url."""
    try:
        return _public_key(text) is not None
    except ValueError:
        return False


def signed_by(public: str, octets: bytes, text: bytes) -> bool:
    """Tests whether ``octets``, r and s of 32 bytes each, are the signature of ``text`` by that public key."""
    halves = (int.from_bytes(octets[:32]), int.from_bytes(octets[32:]))
    try:
        _public_key(public).verify(encode_dss_signature(*halves), text, ECDSA(SHA256()))
    except (InvalidSignature, ValueError):
        return False
    return True


@functools.lru_cache(maxsize=64)
def _public_key(text: str) -> EllipticCurvePublicKey:
    """Raises ``ValueError``, also for a second spelling of the same point."""
    if not _POINT.fullmatch(text) or len(point := _octets(text)) != 65:
        raise ValueError("not a point of P-256")
    if base64.urlsafe_b64encode(point).decode().rstrip("=") != text:
        raise ValueError("not the one spelling of the point")
    return EllipticCurvePublicKey.from_encoded_point(SECP256R1(), point)


def _octets(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
