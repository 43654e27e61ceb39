"""Cache of verified tokens: a signature is not verified again until the token expires or is revoked."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from envelopes.errors import BadTokenError

MOST = 4096
MOST_REFUSED = 1024
REFUSED_SECONDS = 30

_FOR_GOOD = frozenset({"malformed", "algorithm", "signature", "expired", "audience", "chain", "widened"})
"""Refusals that no pairing and no passing of time will change; others are never kept."""


class VerifiedToken(Protocol):
    """A cached result, valid until ``expires`` and while none of ``names`` is revoked."""

    @property
    def expires(self) -> int:
        """Seconds since 1970."""
        ...

    @property
    def names(self) -> tuple[str, ...]:
        """Names of tokens and fingerprints of keys."""
        ...


_T = TypeVar("_T", bound=VerifiedToken)
_Row = TypeVar("_Row")


class TokenCache(Generic[_T]):
    """Verified tokens by the SHA-256 of their text, the least recently used leave first.

    It spares work and is no authority: whether a peer is trusted and a token taken back, callers ask anew
    each time. For one thread: the event loop's (verifying takes 0.15 ms).
    """

    def __init__(self, most: int = MOST, most_refused: int = MOST_REFUSED) -> None:
        self._most = most
        self._most_refused = most_refused
        self._kept: OrderedDict[bytes, _T] = OrderedDict()
        self._refused: OrderedDict[bytes, tuple[float, str, str]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept) + len(self._refused)

    def read(self, text: str, now: float, verify: Callable[[], _T]) -> _T:
        """Returns the result of ``verify()`` for ``text``, cached or new. Raises its ``BadTokenError``, also from the cache."""
        digest = hashlib.sha256(text.encode(errors="surrogatepass")).digest()
        kept = self._kept.get(digest)
        if kept is not None:
            if now < kept.expires:
                self._kept.move_to_end(digest)
                return kept
            del self._kept[digest]
        if (refused := self._refused.get(digest)) is not None:
            until, reason, what = refused
            if now < until:
                raise BadTokenError(reason, what)
            del self._refused[digest]
        try:
            value = verify()
        except BadTokenError as error:
            if error.reason in _FOR_GOOD:
                self._refused[digest] = (now + REFUSED_SECONDS, error.reason, error.what)
                _shorten(self._refused, self._most_refused)
            raise
        self._kept[digest] = value
        _shorten(self._kept, self._most)
        return value

    def revoke(self, name: str) -> None:
        """Forgets at once what depends on a token of that name, or on the key with that fingerprint."""
        for digest in [digest for digest, value in self._kept.items() if name in value.names]:
            del self._kept[digest]


def _shorten(rows: OrderedDict[bytes, _Row], most: int) -> None:
    while len(rows) > most:
        rows.popitem(last=False)
