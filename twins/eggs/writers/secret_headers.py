"""Secrets in HTTP headers and cookies, as text that was copied out of a browser or a program holds them."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from twins.eggs.writers.secret_shapes import is_made_up, looks_random

_REACH = 2048
_AUTHORIZATION = re.compile(
    rb"""authorization[\\"'`\]]{0,4}[ \t]{0,4}(?P<sign>[:=,])[ \t]{0,4}[\\"'`]{0,3}
         (?:(?P<scheme>[A-Za-z-]{3,16})[ \t]{1,4})?(?P<value>[A-Za-z0-9+/._~:|-]{8,2000}={0,2})""",
    re.X | re.I,
)
_AUTH = re.compile(
    rb"""auth[\\"'`]{0,2}[ \t]{0,4}[:=][ \t]{0,4}(?P<quote>[\\"'`]{0,2})(?P<value>[A-Za-z0-9+/._~:-]{16,400}={0,2})""",
    re.X | re.I,
)
_COOKIE = re.compile(
    rb"""cookie2?[\\"'`\]]{0,4}[ \t]{0,4}[:=,][ \t]{0,4}[\\"'`]{0,3}(?=[\w.-]{1,80}=)""", re.I
)
_PAIR = re.compile(rb"""[\w.-]{1,80}=(?P<value>[^;\s"'\\`,]{16,1000})""")
_SCHEMES = frozenset(
    {b"bearer", b"basic", b"token", b"apikey", b"bot", b"key", b"splunk", b"negotiate", b"ntlm"}
)
_COOKIE_FILE = re.compile(rb"cookie file[^\0]{0,600}?\t(?:TRUE|FALSE)\t", re.I)


def authorization(content: bytes, at: int, *, code: bool) -> Iterator[tuple[int, int, str]]:
    """The secret of an ``Authorization`` header, or of a setting ``auth``, whose name begins at ``at``.

    ``code``: only quoted text is a literal there.
    """
    match = _AUTHORIZATION.match(content, at, at + 4200)
    if match is not None:
        scheme, value = (match["scheme"] or b"").lower(), match["value"]
        if is_made_up(value) or (scheme and scheme not in _SCHEMES):
            return
        listed = match["sign"] == b"," and not scheme
        if _is_user_and_password(value) or (looks_random(value, least=16) and not listed):
            yield *match.span("value"), "sign-in header"
        return
    match = _AUTH.match(content, at, at + 2100)
    if match is None or (code and not match["quote"]) or is_made_up(match["value"]):
        return
    if _is_user_and_password(match["value"]) or looks_random(match["value"], least=20):
        yield *match.span("value"), "secret"


def cookies(content: bytes, at: int) -> Iterator[tuple[int, int, str]]:
    """The values of a ``Cookie`` or ``Set-Cookie`` header, or of a cookie file, whose name begins at ``at``."""
    match = _COOKIE.match(content, at, at + 160)
    if match is not None:
        end = min(p for p in (content.find(b"\n", at), content.find(b"\r", at), at + _REACH) if p >= 0)
        for pair in _PAIR.finditer(content, match.end(), end):
            if looks_random(pair["value"], least=16) and not is_made_up(pair["value"]):
                yield *pair.span("value"), "cookie"
                return
    elif found := _COOKIE_FILE.match(content, at, at + 1000):
        yield at, found.end(), "cookie file"


def _is_user_and_password(value: bytes) -> bool:
    """True when it is base64 of ``user:password``, as ``Basic`` has it."""
    try:
        text = base64.b64decode(value.rstrip(b"=") + b"=" * (-len(value.rstrip(b"=")) % 4), validate=True)
    except (binascii.Error, ValueError):
        return False
    _, colon, password = text.partition(b":")
    return bool(colon) and len(password) > 2 and text.isascii() and text.decode("ascii").isprintable()
