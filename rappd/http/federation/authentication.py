"""Authentication at the federation listener: certificate and token, checked for every request."""

from __future__ import annotations

from aiohttp import web

from neighborhoods.auth.tls import presented_certificate
from rappd.daemon.rate_limit import RateLimit
from rappd.dispatch.context import Caller
from rappd.federation.service import FederationService
from rappd.http.federation.admission import ConnectionAdmission

_SCHEME = "bearer "


def caller(request: web.Request) -> tuple[Caller, str]:
    """The caller, and the name its envelopes are from when it has a token and no machine of its own.

    Raises ``BadTokenError``, ``NotPairedError``.
    """
    transport = request.transport
    certificate = presented_certificate(transport.get_extra_info("ssl_object") if transport else None)
    shown = request.headers.get("Authorization", "")
    token = shown[len(_SCHEME) :].strip() if shown[: len(_SCHEME)].lower() == _SCHEME else ""
    machines = request.app[FEDERATION]
    found, name = machines.parts.credentials.who(token, certificate)
    if found.peer or found.caps:
        mark_authenticated(request)
    if found.peer:
        machines.on_sign_of_life(found.peer, "")
    return found, name


def mark_authenticated(request: web.Request) -> None:
    """Marks the other end of the request's connection as authenticated."""
    request.app[ENTRANCE].mark_authenticated(request.protocol)


FEDERATION = web.AppKey("machines", FederationService)
ENTRANCE = web.AppKey("entrance", ConnectionAdmission)
HELLO_LIMIT = web.AppKey("hello_limit", RateLimit)
"""Limits HELLOs of unauthenticated callers, for each address."""
SIGNED_LIMIT = web.AppKey("signed_limit", RateLimit)
"""Limits other requests of unauthenticated callers, which take time to verify."""
