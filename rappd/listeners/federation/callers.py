"""The caller of a request to the federation listener: the machine or the token that it proves."""

from __future__ import annotations

from aiohttp import web

from envelopes.errors import ReportableError
from neighborhoods.auth.tls import presented_certificate
from rappd.daemon.rate_limit import AddressLimit
from rappd.dispatch.rights import Caller
from rappd.federation.service import FederationService
from rappd.listeners.admission import mark_authenticated

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


def is_still(request: web.Request, who: Caller) -> bool:
    """True while ``who``, whose request this is, is trusted as when it came: its trust may end meanwhile."""
    if who.peer:
        known = request.app[FEDERATION].peer_store
        return known.get(who.peer) is not None or not known.was_revoked(
            who.peer
        )  # one that shows a permission
    if not who.caps:
        return True
    try:
        return bool(caller(request)[0].caps)
    except ReportableError:
        return False


FEDERATION = web.AppKey("machines", FederationService)
HELLO_LIMIT = web.AppKey("hello_limit", AddressLimit)
"""Limits HELLOs of unauthenticated callers, for each address."""
SIGNED_LIMIT = web.AppKey("signed_limit", AddressLimit)
"""Limits other requests of unauthenticated callers, which take time to verify."""
