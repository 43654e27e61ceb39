"""The operator's sessions in the page, which may change structure; started by a key from the control socket."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import time

KEY_SECONDS = 600
SESSION_SECONDS = 30 * 24 * 3600


class OperatorSessions:
    """One-use keys that become sessions.

    A session is two tokens made from one nonce: a cookie (HttpOnly, never seen by scripts) and a
    proof that the page keeps for its own origin. Cookies do not tell ports apart, origins do, so
    another program's page on 127.0.0.1 that is sent the cookie still lacks the proof.
    """

    def __init__(self, secret: bytes) -> None:
        self._secret = secret
        self._keys: dict[bytes, float] = {}  # by digest, so that looking one up tells nothing of its text

    def mint_key(self) -> str:
        """A key for ``/#k=KEY``: one use, ten minutes."""
        now = time.monotonic()
        self._keys = {key: until for key, until in self._keys.items() if until > now}
        key = secrets.token_urlsafe(18)
        self._keys[self._digest(key)] = now + KEY_SECONDS
        return key

    def trade(self, key: str) -> tuple[str, str] | None:
        """The (cookie, proof) for a key that is still good, or None. The key is used up."""
        until = self._keys.pop(self._digest(key), 0.0)
        if until <= time.monotonic():
            return None
        claim = f"{int(time.time()) + SESSION_SECONDS}.{secrets.token_urlsafe(12)}"
        return f"{claim}.{self._mark('cookie', claim)}", self._mark("proof", claim)

    def holds(self, cookie: str, proof: str) -> bool:
        """True when the two tokens belong together, were made here, and have not expired."""
        claim, _, mark = cookie.rpartition(".")
        if not hmac.compare_digest(mark.encode(), self._mark("cookie", claim).encode()):
            return False
        if not hmac.compare_digest(proof.encode(), self._mark("proof", claim).encode()):
            return False
        return int(claim.split(".", 1)[0]) > time.time()

    def _digest(self, key: str) -> bytes:
        return hmac.digest(self._secret, b"key:" + key.encode("utf-8", "surrogatepass"), hashlib.sha256)

    def _mark(self, use: str, claim: str) -> str:
        digest = hmac.digest(self._secret, f"{use}:{claim}".encode(), hashlib.sha256)
        return base64.urlsafe_b64encode(digest).decode().rstrip("=")
