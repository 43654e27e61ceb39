"""Keys that can be told by their form alone: those of well-known makers (``vendor_key_shapes.toml``), and private keys of programs.

Everything works on bytes at a given place; ``secret_scan`` finds the places. Each expression takes time in
proportion to what it is given, and no secret is looked at beyond 4 KB.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

RUN = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
LEAST_RUN = 20
"""Every key of ``MAKERS`` has so many of ``RUN`` in a row."""
HEAD_ROOM = 72
"""Bytes before its run within which a key may begin."""

_NEAR = 2048
_LONGEST_HEAD = 60
_BASE58 = b"123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

Check = Callable[[bytes, int, bytes], bool]
"""True when a match is a key: (content, place in it, the matched bytes)."""


class KeyForm(NamedTuple):
    """One form of key: ``what`` a finding calls it, ``head`` as it begins, ``shape`` of the whole key."""

    what: str
    head: bytes
    shape: bytes
    check: Check | None = None


def _is_private_jwk(content: bytes, at: int, found: bytes) -> bool:
    """``d`` is private in every JSON Web Key, ``k`` in one of the kind ``oct``."""
    near = content[max(0, at - _NEAR) : at + len(found) + _NEAR]
    kind = re.search(rb'\\?"kty\\?"\s{0,8}:\s{0,8}\\?"(\w{1,8})', near)
    return kind is not None and (b"d" in found[:3] or kind[1] == b"oct")


def _is_encoded_private_key(content: bytes, at: int, found: bytes) -> bool:
    """True when base64, begun at any of its three places, holds the first line of a private key."""
    start = found[:120]
    for skipped in range(3):
        octets = start[skipped : skipped + (len(start) - skipped) // 4 * 4]
        try:
            if b"PRIVATE KEY" in base64.b64decode(octets):
                return True
        except binascii.Error:
            continue
    return False


def _is_base58_checked(content: bytes, at: int, found: bytes) -> bool:
    """True when the last four bytes of a Bitcoin key are the checksum of the others."""
    number = 0
    for sign in found:
        number = number * 58 + _BASE58.index(sign)
    octets = number.to_bytes(max(1, (number.bit_length() + 7) // 8), "big")
    return hashlib.sha256(hashlib.sha256(octets[:-4]).digest()).digest()[:4] == octets[-4:]


def _has_digit(content: bytes, at: int, found: bytes) -> bool:
    return re.search(rb"[0-9]", found) is not None


_CHECKS: Mapping[str, Check] = {
    "has_digit": _has_digit,
    "is_base58_checked": _is_base58_checked,
    "is_encoded_private_key": _is_encoded_private_key,
    "is_private_jwk": _is_private_jwk,
}


def _read(what: str, head: str, shape: str, check: str = "") -> KeyForm:
    return KeyForm(what, head.encode(), shape.encode(), _CHECKS[check] if check else None)


MAKERS = tuple(
    _read(*row) for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["keys"]
)

_MIDDLE = (b"0tLS0tQkVHSU4", b"tLS0tLUJFR0lOI", b".atlasv1.", b"-us")
"""Heads that stand in the middle of a longer word."""
_HEADS = b"|".join(dict.fromkeys(maker.head for maker in MAKERS))
_ESCAPE = rb"\\[abfnrtv]|%[0-9A-Fa-f]{2}|\\(?:x|u00)[0-9A-Fa-f]{2}"
# A key stands for itself: after no letter or digit, unless that is the end of an escape.
_AT_BOUNDARY = re.compile(rb"(?<![A-Za-z0-9])(?=%s)" % _HEADS)
_AFTER_ESCAPE = re.compile(rb"(?:%s)(?=%s)" % (_ESCAPE, _HEADS))
_IN_THE_MIDDLE = re.compile(b"(?=%s)" % b"|".join(map(re.escape, _MIDDLE)))
_SHAPE = re.compile(
    b"|".join(
        b"(?P<s%d>%s)(?![A-Za-z0-9])" % (number, b"(?:%s)" % maker.shape)
        for number, maker in enumerate(MAKERS)
    ),
    re.ASCII,
)
# In manuals: AKIAIOSFODNN7EXAMPLE, ghp_xxxx…, and the sign-in key that explains what such a key is.
_IN_MANUALS = re.compile(
    rb"example|placeholder|redacted|x{4}|0{8}|\.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6", re.I
)

_PEM = re.compile(
    rb"-----BEGIN (?:[A-Z0-9]{2,12} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?:[\s\"'+,]|\\+[nr]|(?:Proc-Type|DEK-Info|Version|Comment|Charset|Hash): ?[^\r\n\\]{0,80})*"
    rb"(?:[A-Za-z0-9+/]{24}|[A-Za-z0-9+/=\s]{3,2000}-----END)"
)
_SSH2 = re.compile(rb"---- BEGIN SSH2 (?:ENCRYPTED )?PRIVATE KEY ----\s[\s\S]{0,600}?[A-Za-z0-9+/]{24}")

AZURE = (b"AccountKey=", b"SharedAccessKey=")
"""The beginnings of Azure's keys; text is looked at for ``sig=`` besides."""
_AZURE_KEY = re.compile(rb"(?:Account|SharedAccess)Key=[A-Za-z0-9+/]{40,}={0,2}(?![A-Za-z0-9])")
_AZURE_SIGNATURE = re.compile(rb"sig=(?:[A-Za-z0-9_-]|%2[BFbf]|[+/]){40,}(?:%3[Dd]|=){1,2}")


def heads(content: bytes, start: int, end: int) -> Iterator[int]:
    """Places from ``start`` to before ``end`` at which a key of ``MAKERS`` may begin."""
    window = content[start:end]
    escaped = b"\\" in window or b"%" in window
    for beginning in (
        (_AT_BOUNDARY, _AFTER_ESCAPE, _IN_THE_MIDDLE) if escaped else (_AT_BOUNDARY, _IN_THE_MIDDLE)
    ):
        for match in beginning.finditer(content, start, end + _LONGEST_HEAD):
            if match.end() < end:
                yield match.end()


def head_at(content: bytes, at: int) -> bool:
    """True when a key of ``MAKERS`` may begin at ``at``."""
    return _AT_BOUNDARY.match(content, at) is not None


def known_key(content: bytes, at: int) -> tuple[int, str] | None:
    """(end, name) of the maker's key that begins at ``at``, one of ``heads``; None when none does."""
    match = _SHAPE.match(content, at, at + 4096)
    if match is None or _IN_MANUALS.search(match[0]):
        return None
    maker = MAKERS[int((match.lastgroup or "s0")[1:])]
    if maker.check is not None and not maker.check(content, at, match[0]):
        return None
    return match.end(), maker.what


def azure_key(content: bytes, at: int) -> tuple[int, str] | None:
    """The same for one of ``AZURE``."""
    match = _AZURE_KEY.match(content, at) or _AZURE_SIGNATURE.match(content, at, at + 400)
    if match is None or _IN_MANUALS.search(match[0]):
        return None
    what = "Azure signature" if match[0].startswith(b"sig=") else "Azure connection string"
    return match.end(), what


def private_key(content: bytes, at: int) -> int:
    """The place where the piece of a private key block that begins at ``at`` ends; 0 when it is only its name."""
    match = _PEM.match(content, at, at + 4096) or _SSH2.match(content, at, at + 4096)
    return match.end() if match else 0
