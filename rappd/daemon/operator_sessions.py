"""The operator's sessions in the page, which may change structure; started by a link from the control socket."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time

from rappd.daemon.request_signatures import is_public_key

LINK_SECONDS = 600
SESSION_SECONDS = 30 * 24 * 3600

_LINK_ID = b"rappd operator link\n"
_LINK_PROOF = b"rappd operator session\n"


class OperatorSessions:
    """One-use keys that become sessions of a browser's key pair.

    Nothing that travels is enough to use a session. The one-use key stays at both ends: the page names it by
    its hash and proves it by a MAC over its public key, so that a program that reads the request, and is quicker, can only
    start a session of that same public key. The cookie says which public key the session is of; the
    private half signs each request (``request_signatures``).
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._links: dict[str, tuple[str, float]] = {}  # id -> key, end

    def mint_key(self) -> str:
        """A key for ``/#k=KEY``: one use, ten minutes."""
        now = time.monotonic()
        self._links = {id: link for id, link in self._links.items() if link[1] > now}
        key = secrets.token_urlsafe(18)
        self._links[link_id(key)] = key, now + LINK_SECONDS
        return key

    def trade(self, link: str, public: str, proof: str) -> str | None:
        """The cookie of a session of the key ``public``, or None.

        ``link`` is the id of a one-use key that is still good, ``proof`` its MAC over ``public``; the key is used up.
        A wrong proof uses up nothing, so that guessing keeps nobody out.
        """
        key, until = self._links.get(link, ("", 0.0))
        if until <= time.monotonic() or not is_public_key(public):
            return None
        if not hmac.compare_digest(proof.encode("utf-8", "replace"), link_proof(key, public).encode()):
            return None
        del self._links[link]
        claim = f"{int(time.time()) + SESSION_SECONDS}.{public}"
        return f"{claim}.{self._mark(claim)}"

    def public_key(self, cookie: str) -> str | None:
        """The public key of the session that ``cookie`` names; None unless it was made here and has not expired."""
        claim, _, mark = cookie.rpartition(".")
        if not hmac.compare_digest(mark.encode("utf-8", "replace"), self._mark(claim).encode()):
            return None
        until, _, public = claim.partition(".")
        return public if int(until) > time.time() else None

    def _mark(self, claim: str) -> str:
        text = b"session:" + claim.encode("utf-8", "surrogatepass")
        return _text(hmac.digest(self._secret, text, hashlib.sha256))


def link_id(key: str) -> str:
    """The name under which a page speaks of a one-use key; tells nothing of it (144 random bits)."""
    return _text(hashlib.sha256(_LINK_ID + key.encode("utf-8", "replace")).digest())


def link_proof(key: str, public: str) -> str:
    """Proves the one-use key for the public key ``public``, without showing it."""
    return _text(
        hmac.digest(
            key.encode("utf-8", "replace"), _LINK_PROOF + public.encode("utf-8", "replace"), hashlib.sha256
        )
    )


def _text(octets: bytes) -> str:
    return base64.urlsafe_b64encode(octets).decode().rstrip("=")
