"""Authorization of a caller: by its own scopes, and by capabilities that were delegated to it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable

from envelopes.errors import BadTokenError
from envelopes.identity.capabilities import reduced
from envelopes.identity.capability_tokens import Grant, links, verify_chain
from envelopes.identity.keys import fingerprint_of
from neighborhoods.auth.token_cache import TokenCache


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
        self._cache: TokenCache[Grant] = TokenCache()

    def accept(self, value: object, *, caller: str, now: float) -> Grant:
        """The grant in ``value``, shown by the machine ``caller`` (its proven fingerprint).

        What a machine passed on ends with the trust in it. Raises ``BadTokenError``. The first sight of a chain
        takes 0.15 ms a link.
        """
        texts = links(value)
        grant = self._cache.read(
            "\n".join(texts),
            now,
            lambda: verify_chain(texts, audience=self._audience, now=now, root=self._own),
        )
        if any(jti in self._revoked for jti in grant.jtis):
            raise BadTokenError("revoked")
        if any(self._ended(machine) for machine in (*grant.signers, grant.holder)):
            raise BadTokenError("revoked")
        if grant.holder != caller:
            raise BadTokenError("holder")
        return grant

    def forget(self, name: str) -> None:
        """Drops what was verified by a ``jti`` that was taken back, or by a peer that is none any more."""
        self._cache.revoke(name)


def effective(scopes: Iterable[str], grants: Iterable[Grant] = ()) -> tuple[str, ...]:
    """All that a caller may do, in as few texts as possible. Uses are not looked at."""
    return reduced([*scopes, *(one for grant in grants for one in grant.caps)])
