"""Capabilities that are passed on: a chain of tokens, each narrower than the one before it.

The node where they count signs the first link for a holder; a holder signs the next link for somebody
else, without asking anyone. The whole chain is verified offline, down to the node's own key. A link is
worth something only together with proof that its holder shows it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence

import msgspec

from envelopes.envelope import new_id
from envelopes.errors import BadCapabilityError, BadTokenError
from envelopes.identity.caller_tokens import LONGEST, Binding, Claims, Header, check_window, mint, opened
from envelopes.identity.capabilities import attenuate, check, covers
from envelopes.identity.keys import IdentityKey, fingerprint_of

MOST_LINKS = 8


class Grant(msgspec.Struct, frozen=True):
    """The rights that a verified chain gives to ``holder`` (a fingerprint) until ``expires`` (seconds since 1970).

    ``jtis`` are the links' names, root first; ``signers`` the keys that signed them. ``uses`` says how often
    each limited link may be used, by the name to count it under: the ``jti`` of the root, and for others
    ``<16 hex of the signer>.<jti>``, so that nobody uses up what somebody else was given.
    """

    holder: str
    caps: tuple[str, ...]
    jtis: tuple[str, ...]
    signers: tuple[str, ...]
    uses: dict[str, int]
    expires: int


def mint_root(
    key: IdentityKey,
    *,
    to: str,
    caps: Iterable[str],
    now: float,
    seconds: int,
    uses: int | None = None,
    jti: str = "",
) -> str:
    """The first link: what the node of ``key`` allows the node ``to`` (a fingerprint) to do there."""
    claims = Claims(
        iss=key.fingerprint,
        sub=to,
        aud=key.fingerprint,
        iat=int(now),
        exp=int(now) + seconds,
        jti=jti or new_id(),
        cnf=Binding(kid=to),
        caps=tuple(check(one) for one in caps),
        uses=uses,
    )
    return mint(key, claims, key=key.public.hex())


def narrow(
    chain: str | Sequence[str],
    holder: IdentityKey,
    *,
    to: str,
    caps: Iterable[str],
    now: float,
    expires: int | None = None,
    uses: int | None = None,
    jti: str = "",
) -> list[str]:
    """``chain`` and one more link, by which its ``holder`` passes on to ``to`` what it has of ``caps``.

    The new link ends with the last one, or earlier, and may be used no more often. Raises ``BadTokenError`` when
    the chain does not hold or is another's, ``BadCapabilityError`` when nothing of ``caps`` can be passed on.
    """
    texts = links(chain)
    claims = _followed(texts, now)
    last = claims[-1]
    if last.sub != holder.fingerprint:
        raise BadTokenError("holder")
    if len(texts) == MOST_LINKS:
        raise BadTokenError("chain")
    allowed = attenuate(last.caps or (), [check(one) for one in caps])
    if not allowed:
        raise BadCapabilityError(
            "Nothing of that may be passed on.", do=f"It may be part of: {', '.join(last.caps or ())}"
        )
    limits = [limit for limit in (uses, last.uses) if limit is not None]
    child = Claims(
        iss=holder.fingerprint,
        sub=to,
        aud=last.aud,
        iat=int(now),
        exp=last.exp if expires is None else min(last.exp, expires),
        jti=jti or new_id(),
        cnf=Binding(kid=to),
        caps=allowed,
        uses=min(limits, default=None),
        parent=_hash(texts[-1]),
    )
    return [*texts, mint(holder, child, key=holder.public.hex())]


def verify_chain(value: object, *, audience: str, now: float, root: bytes) -> Grant:
    """The rights that ``_x_cap`` gives at the node ``audience``, whose public key is ``root``. Raises ``BadTokenError``.

    ``value`` is one token, or a list of them, root first. Whether a link was taken back, and whether the
    holder shows it, is checked for each request (neighborhoods.auth.caller_auth).
    """
    claims = _followed(links(value), now, audience)
    if claims[0].iss != fingerprint_of(root):
        raise BadTokenError("issuer")
    last = claims[-1]
    return Grant(
        holder=last.sub,
        caps=last.caps or (),
        jtis=tuple(one.jti for one in claims),
        signers=tuple(one.iss for one in claims),
        uses={_counted(one): one.uses for one in claims if one.uses is not None},
        expires=min(one.exp for one in claims),
    )


def links(value: object) -> list[str]:
    """The tokens of an ``_x_cap``, root first. Raises ``BadTokenError`` for anything else, unread."""
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, (list, tuple)) or not 1 <= len(texts) <= MOST_LINKS:
        raise BadTokenError("malformed")
    if not all(isinstance(text, str) and len(text) <= LONGEST for text in texts):
        raise BadTokenError("malformed")
    return list(texts)


def _followed(texts: list[str], now: float, audience: str = "") -> list[Claims]:
    """Every link's claims, each verified and seen to follow from the one before it."""
    chain: list[Claims] = []
    for text in texts:
        claims = opened(text, _own_key)
        if claims.caps is None or claims.cnf is None or claims.cnf.kid != claims.sub or claims.cnf.x5t:
            raise BadTokenError(
                "malformed"
            )  # another kind of token, or one whose holder is not who it is for
        check_window(claims, audience=audience or claims.aud, now=now)
        if chain:
            _check_link(chain[-1], claims, _hash(texts[len(chain) - 1]))
        elif claims.parent or claims.iss != claims.aud:
            raise BadTokenError("chain")
        chain.append(claims)
    return chain


def _check_link(parent: Claims, child: Claims, parent_hash: str) -> None:
    if child.iss != parent.sub or child.parent != parent_hash or child.aud != parent.aud:
        raise BadTokenError("chain")
    more_often = parent.uses is not None and (child.uses is None or child.uses > parent.uses)
    if more_often or child.exp > parent.exp:
        raise BadTokenError("widened")
    if not all(covers(parent.caps or (), one) for one in child.caps or ()):
        raise BadTokenError("widened")


def _own_key(header: Header, claims: Claims) -> bytes | None:
    """The key that the link brings along; ``opened`` sees that it hashes to ``iss``."""
    try:
        return bytes.fromhex(header.key)
    except ValueError:
        raise BadTokenError("malformed") from None


def _counted(claims: Claims) -> str:
    return f"{claims.iss[:16]}.{claims.jti}" if claims.parent else claims.jti


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
