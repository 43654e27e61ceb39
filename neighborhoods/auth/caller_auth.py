"""Authenticates a caller by the token and the certificate of its request."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Literal

import msgspec

from envelopes.errors import BadTokenError
from envelopes.identity.caller_tokens import LONGEST, Claims, read_token, thumbprint
from envelopes.identity.capabilities import reduced
from envelopes.identity.capability_tokens import Grant, links, verify_chain
from envelopes.identity.certificates import pin_of
from envelopes.identity.keys import fingerprint_of
from neighborhoods.errors import NotPairedError
from neighborhoods.peer import Peer


class PresentedCredentials(msgspec.Struct, frozen=True):
    """An authenticated caller. ``peer`` is a paired machine, ``issued`` the bearer of a token made here.

    ``name`` is what the owner calls it, ``caps`` what it may do, ``jti`` the name of its token ("" when a
    certificate alone told who it is).
    """

    kind: Literal["peer", "issued"]
    name: str
    caps: tuple[str, ...]
    jti: str = ""
    peer: Peer | None = None


class CallerAuthenticator:
    """Asked for every request; it asks the book of peers and the revoked names each time."""

    def __init__(
        self,
        own: bytes,
        peer: Callable[[str], Peer | None],
        by_pin: Callable[[bytes], Peer | None],
        revoked: Container[str],
    ) -> None:
        """Finds out which peer sent a request to the node with the public key ``own`` (32 bytes).

        Peers are found by fingerprint, and by the SHA-256 of their certificate; ``revoked`` holds the ``jti``
        of every revoked token, and may change.
        """
        self._own = own
        self._audience = fingerprint_of(own)
        self._peer = peer
        self._by_pin = by_pin
        self._revoked = revoked

    def who(self, token: str, certificate: bytes | None, now: float) -> PresentedCredentials | None:
        """The caller, or None for a stranger: no token, and no certificate of a peer.

        ``token`` is the text after ``CallerAuthenticator``, or ""; ``certificate`` is DER, from the connection itself.
        Raises ``BadTokenError``, and ``NotPairedError`` for the token of a machine that is no peer.
        """
        connected = self._by_pin(pin_of(certificate)) if certificate is not None else None
        if not token:
            return _as_peer(connected) if connected is not None else None
        claims = self._claims(token, now)
        if claims.jti in self._revoked:
            raise BadTokenError("revoked")
        if claims.iss == self._audience:
            if connected is not None:
                raise BadTokenError("disagree")
            _check_binding(claims, certificate)
            return PresentedCredentials("issued", claims.sub, claims.caps or (), claims.jti)
        peer = self._peer(claims.iss)
        if peer is None:
            raise _no_peer()
        if certificate is not None and (connected is None or connected.fingerprint != peer.fingerprint):
            raise BadTokenError("disagree")
        _check_binding(claims, certificate)
        return _as_peer(peer, claims.jti)

    def _claims(self, token: str, now: float) -> Claims:
        if len(token) > LONGEST:
            raise BadTokenError("malformed")
        try:
            return read_token(token, key_of=self._key_of, audience=self._audience, now=now)
        except BadTokenError as error:
            if error.reason == "issuer":
                raise _no_peer() from error
            raise

    def _key_of(self, issuer: str) -> bytes | None:
        if issuer == self._audience:
            return self._own
        peer = self._peer(issuer)
        return peer.public_key if peer is not None else None


def _as_peer(peer: Peer, jti: str = "") -> PresentedCredentials:
    return PresentedCredentials("peer", peer.name, peer.scopes, jti, peer)


def _check_binding(claims: Claims, certificate: bytes | None) -> None:
    bound = claims.cnf.x5t if claims.cnf is not None else ""
    if bound and (certificate is None or thumbprint(certificate) != bound):
        raise BadTokenError("binding")


def _no_peer() -> NotPairedError:
    return NotPairedError("That machine is not paired with this one.", do="Pair them: rappd peers pair")


class Authorizer:
    """Reads what callers present as ``_x_cap``, and asks each time whether it was taken back."""

    def __init__(self, own: bytes, revoked: Container[str], ended: Callable[[str], bool]) -> None:
        """Checks tokens that are made out to the node with the public key ``own``.

        ``revoked`` holds the ``jti`` of every revoked token; ``ended(fingerprint)`` is true for a machine
        that was trusted once and is no more.
        """
        self._own = own
        self._audience = fingerprint_of(own)
        self._revoked = revoked
        self._ended = ended

    def accept(self, value: object, *, caller: str, now: float) -> Grant:
        """The grant in ``value``, shown by the machine ``caller`` (its proven fingerprint).

        What a machine passed on ends with the trust in it. Raises ``BadTokenError``. Each link takes 0.15 ms.
        """
        grant = verify_chain(links(value), audience=self._audience, now=now, root=self._own)
        if any(jti in self._revoked for jti in grant.jtis):
            raise BadTokenError("revoked")
        if any(self._ended(machine) for machine in (*grant.signers, grant.holder)):
            raise BadTokenError("revoked")
        if grant.holder != caller:
            raise BadTokenError("holder")
        return grant


def effective(scopes: Iterable[str], grants: Iterable[Grant] = ()) -> tuple[str, ...]:
    """All that a caller may do, in as few texts as possible. Uses are not looked at."""
    return reduced([*scopes, *(one for grant in grants for one in grant.caps)])
