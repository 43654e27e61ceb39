"""The caller of a request to the federation listener: the machine or the token that it proves."""

from __future__ import annotations

from dataclasses import dataclass

from aiohttp import web

from envelopes.envelope import HELLO, Envelope
from envelopes.errors import ReportableError
from neighborhoods.auth.tls import presented_certificate
from neighborhoods.peer_store import PeerStore
from rappd.daemon.rate_limit import AddressLimit
from rappd.dispatch.rights import Caller
from rappd.federation.connected_peers import PeerEventHandler
from rappd.federation.request_auth import RequestAuthenticator
from rappd.listeners.connection_admission import mark_authenticated

_SCHEME = "bearer "


def caller(request: web.Request) -> tuple[Caller, str]:
    """The caller, and the name its envelopes are from when it has a token and no machine of its own.

    Raises ``BadTokenError``, ``NotPairedError``.
    """
    transport = request.transport
    certificate = presented_certificate(transport.get_extra_info("ssl_object") if transport else None)
    shown = request.headers.get("Authorization", "")
    token = shown[len(_SCHEME) :].strip() if shown[: len(_SCHEME)].lower() == _SCHEME else ""
    lookup = request.app[FEDERATION]
    found, name = lookup.credentials.who(token, certificate)
    if found.peer or found.caps:
        mark_authenticated(request)
    if found.peer:
        lookup.events.on_sign_of_life(found.peer, "")
    return found, name


def is_still(request: web.Request, who: Caller) -> bool:
    """True while ``who``, whose request this is, is trusted as when it came: its trust may end meanwhile."""
    if who.peer:
        known = request.app[FEDERATION].peers
        return known.get(who.peer) is not None or not known.was_revoked(
            who.peer
        )  # one that shows a permission
    if not who.caps:
        return True
    try:
        return bool(caller(request)[0].caps)
    except ReportableError:
        return False


@dataclass(slots=True, frozen=True)
class CallerLookup:
    """The parts that tell who calls, and that learn that a peer is there."""

    peers: PeerStore
    credentials: RequestAuthenticator
    events: PeerEventHandler


FEDERATION = web.AppKey("callers", CallerLookup)
"""In the application of the federation listener, and in no other."""
NODE_ID = web.AppKey("node_id", str)
"""The sender of this machine's own envelopes."""
HELLO_LIMIT = web.AppKey("hello_limit", AddressLimit)
"""Limits HELLOs of unauthenticated callers, for each address."""
SIGNED_LIMIT = web.AppKey("signed_limit", AddressLimit)
"""Limits other requests of unauthenticated callers, which take time to verify."""


@dataclass(slots=True, frozen=True)
class RequestSender:
    """The sender of a request; ``name`` is what a token without a machine of its own is called."""

    request: web.Request
    who: Caller
    name: str

    async def armed(self, envelope: Envelope) -> tuple[Envelope, Caller]:
        """The envelope as whose it is, and what its sender may do by all that it shows."""
        app = self.request.app
        known = self.who.peer or self.who.caps
        limit = app[HELLO_LIMIT] if envelope.verb == HELLO else app[SIGNED_LIMIT]
        try:
            armed = await app[FEDERATION].credentials.armed(envelope, self.who)
        except ReportableError:
            if not known:
                limit.take(self.request.remote or "")
            raise
        if not known and not armed.peer and not armed.caps:
            limit.take(self.request.remote or "")  # what proves itself is never limited by what does not
        if armed.peer and not self.who.peer:
            mark_authenticated(self.request)
        if self.name and not armed.peer:
            envelope = Envelope(
                envelope.id,
                self.name,
                envelope.recipient,
                envelope.verb,
                envelope.data,
                envelope.extensions,
            )
        return envelope, armed
