"""The response headers that a service may send: a list of allowed ones, all others are left out."""

from __future__ import annotations

import re
from collections.abc import Mapping

ALLOWED = frozenset(
    {
        *("content-type", "content-disposition", "content-language", "content-encoding", "content-range"),
        *("accept-ranges", "age", "allow", "cache-control", "etag", "expires", "last-modified"),
        *("retry-after", "vary"),
    }
)
"""Headers that describe the answer itself. Beside these: ``X-`` headers of a service's own, and ``Location``."""

_AT_OPERATOR_ORIGIN = {
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
}
_OWN = re.compile(r"x-[a-z0-9-]{1,98}")
_OF_BROWSERS = frozenset(
    {
        *("x-content-type-options", "x-dns-prefetch-control", "x-frame-options", "x-ua-compatible"),
        *(
            "x-permitted-cross-domain-policies",
            "x-xss-protection",
            "x-webkit-csp",
            "x-content-security-policy",
        ),
        *("x-accel-redirect", "x-sendfile", "x-rappd-proof"),
    }
)
"""``X-`` headers that tell a browser or a proxy what to do."""
_UNSAFE_PATH = re.compile(r"[\\\x00-\x20\x7f]|//|/\.\.?(?:/|$)|%2e|%2f|%5c", re.IGNORECASE)


def service_headers(service: str, given: Mapping[str, str], *, at_operator_origin: bool) -> dict[str, str]:
    """Those of ``given`` that the service ``service`` may send.

    At the operator's origin, where its answer would run with the operator's rights, a browser may show it but
    run nothing of it.
    """
    kept = {name: value for name, value in given.items() if _may_send(service, name.lower(), value)}
    return kept | _AT_OPERATOR_ORIGIN if at_operator_origin else kept


def _may_send(service: str, name: str, value: str) -> bool:
    if name == "location":
        return _leads_to(service, value)
    return name in ALLOWED or (name not in _OF_BROWSERS and _OWN.fullmatch(name) is not None)


def _leads_to(service: str, address: str) -> bool:
    """True for a path below the service's own address."""
    path = re.split(r"[?#]", address, maxsplit=1)[0]
    own = f"/api/{service}"
    return (path == own or path.startswith(f"{own}/")) and not _UNSAFE_PATH.search(path)
