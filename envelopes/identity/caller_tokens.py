"""Tokens that say who calls: short ones that a peer signs for itself, long ones that were issued here.

EdDSA JWTs (RFC 7519) by PyJWT. ``iss`` is always the fingerprint of the key that signed. What is read is
read strictly (RFC 8725): one algorithm, typed claims, nothing taken from the header but ``kid`` and
``key``. Moments are seconds since 1970, as JWTs have them.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec

from envelopes.errors import BadCapabilityError, BadTokenError
from envelopes.identity.capabilities import check
from envelopes.identity.keys import IdentityKey, fingerprint_of

if TYPE_CHECKING:
    from jwt.api_jws import PyJWS

LONGEST = 8192
"""Characters in one token; longer texts are refused unread."""
PEER_SECONDS = 600
"""The longest lifetime of a token that a peer signs for itself."""
MOST_CAPABILITIES = 32
"""In one token: each link of a chain is compared with the one before it, text by text."""
LEEWAY = 60
"""By how many seconds a token may be from the future."""

_ALGORITHM = "EdDSA"
_SHAPE = re.compile(r"([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]+)\.[A-Za-z0-9_-]+")

_Fingerprint = Annotated[str, msgspec.Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Moment = Annotated[int, msgspec.Meta(ge=0, le=1 << 53)]
_Short = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]


class Binding(msgspec.Struct, frozen=True, omit_defaults=True):
    """To what a token is bound: ``x5t`` a certificate (base64url SHA-256), ``kid`` the holder's key."""

    x5t: str = msgspec.field(default="", name="x5t#S256")
    kid: Annotated[str, msgspec.Meta(pattern=r"\A(?:[0-9a-f]{64})?\Z")] = ""


class Claims(msgspec.Struct, frozen=True, omit_defaults=True):
    """The claims of a verified token. ``iat`` is 0 and the others are empty where it has none."""

    iss: _Fingerprint
    sub: _Short
    aud: _Fingerprint
    exp: _Moment
    jti: _Short
    iat: _Moment = 0
    nbf: _Moment = 0
    cnf: Binding | None = None
    caps: Annotated[tuple[str, ...], msgspec.Meta(max_length=MOST_CAPABILITIES)] | None = None
    uses: Annotated[int, msgspec.Meta(ge=1, le=1 << 53)] | None = None
    parent: str = ""


class Header(msgspec.Struct, frozen=True):
    """The header of a token: ``kid`` and ``key`` are the issuer's fingerprint and public key (hex)."""

    alg: str
    typ: str = "JWT"
    kid: str = ""
    key: str = ""
    crit: Any = msgspec.UNSET
    b64: Any = msgspec.UNSET


def mint_issued_token(
    key: IdentityKey, *, name: str, caps: Iterable[str], now: float, seconds: int, jti: str
) -> str:
    """A token for a caller without a key: ``name`` is its label, ``caps`` all that it may do here."""
    moment = int(now)
    allowed = tuple(check(one) for one in caps)
    claims = Claims(
        iss=key.fingerprint,
        sub=name,
        aud=key.fingerprint,
        iat=moment,
        exp=moment + seconds,
        jti=jti,
        caps=allowed,
    )
    return mint(key, claims)


def read_token(text: str, *, key_of: Callable[[str], bytes | None], audience: str, now: float) -> Claims:
    """The claims of a token that says who calls. Raises ``BadTokenError``, and nothing else.

    ``key_of`` gives the public key (32 bytes) of an issuer's fingerprint, None when that is not trusted.
    Revocation and the binding to a certificate are checked elsewhere. A capability token is refused:
    it travels inside envelopes, so that seeing one must not make anyone its holder.
    """
    claims = opened(text, lambda header, claims: key_of(claims.iss))
    check_window(claims, audience=audience, now=now)
    if not claims.iat:
        raise BadTokenError("malformed", "'iat' is missing")
    if claims.parent or claims.uses is not None or (claims.cnf and claims.cnf.kid):
        raise BadTokenError("malformed", "it is one for '_x_cap', not for the Authorization header")
    if claims.iss == audience:
        if claims.caps is None:
            raise BadTokenError("malformed", "'caps' is missing")
        return claims
    if claims.caps is not None:
        raise BadTokenError("malformed", "'caps' is for tokens that were issued here")
    if claims.exp - claims.iat > PEER_SECONDS:
        raise BadTokenError("malformed", f"'exp' is more than {PEER_SECONDS} s after 'iat'")
    if not claims.sub.endswith(f"_{claims.iss[:16]}"):
        raise BadTokenError("binding")
    return claims


def mint(key: IdentityKey, claims: Claims, /, **header: str) -> str:
    """Any claims, signed. ``ValueError`` for those that no one could read: wrong in form, or too long."""
    payload = msgspec.json.encode(claims)
    _CLAIMS.decode(payload)
    signer: Any = key  # the key never leaves its object: PyJWT asks it to sign
    text = _jws().encode(payload, signer, _ALGORITHM, {"kid": key.fingerprint, **header})
    if len(text) > LONGEST:
        raise ValueError(f"the token would have {len(text)} characters, more than {LONGEST}")
    return text


def opened(text: str, key_of: Callable[[Header, Claims], bytes | None]) -> Claims:
    """The claims of any token whose signature holds; its times and audience are not looked at.

    ``key_of`` chooses the public key from what is not verified yet; it must hash to ``iss``, or the token
    is refused. Raises ``BadTokenError``.
    """
    if not isinstance(text, str) or len(text) > LONGEST:
        raise BadTokenError("malformed")
    shape = _SHAPE.fullmatch(text)
    if shape is None:
        raise BadTokenError("malformed")
    header = _parsed(shape[1], _HEADER)
    if header.alg != _ALGORITHM:
        raise BadTokenError("algorithm")
    if header.crit is not msgspec.UNSET or header.b64 is not msgspec.UNSET:
        raise BadTokenError("malformed")  # demands something that nothing here understands
    claims = _parsed(shape[2], _CLAIMS)
    if header.kid not in ("", claims.iss):
        raise BadTokenError("malformed")
    try:
        for one in claims.caps or ():
            check(one)
    except BadCapabilityError as error:
        raise BadTokenError("malformed") from error
    public = key_of(header, claims)
    if public is None:
        raise BadTokenError("issuer")
    if fingerprint_of(public) != claims.iss:
        raise BadTokenError("signature")
    _verify(text, public)
    return claims


def check_window(claims: Claims, *, audience: str, now: float) -> None:
    """Raises ``BadTokenError`` for another audience, and for a moment outside the token's life."""
    if claims.aud != audience:
        raise BadTokenError("audience")
    if max(claims.iat, claims.nbf) > now + LEEWAY:
        raise BadTokenError("not_yet")
    if claims.exp <= now or claims.exp <= claims.iat:
        raise BadTokenError("expired")


def thumbprint(certificate: bytes) -> str:
    """``x5t#S256`` of a certificate (DER), as RFC 8705 has it."""
    digest = hashlib.sha256(certificate).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


_T = TypeVar("_T")
_HEADER = msgspec.json.Decoder(Header)
_CLAIMS = msgspec.json.Decoder(Claims)


def _parsed(part: str, decoder: msgspec.json.Decoder[_T]) -> _T:
    try:
        return decoder.decode(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except msgspec.ValidationError as error:
        raise BadTokenError("malformed", _fault_in(str(error))) from error
    except (ValueError, RecursionError) as error:
        raise BadTokenError("malformed") from error


def _fault_in(message: str) -> str:
    """The claim that msgspec complains of: it writes names in backticks, and a place as ``$.exp``."""
    if (missing := re.search(r"missing required field `(\w+)`", message)) is not None:
        return f"'{missing[1]}' is missing"
    place = re.search(r"at `\$\.([\w.#]+)", message)
    return f"'{place[1]}' has not its form" if place is not None else ""


def _verify(text: str, public: bytes) -> None:
    from jwt.exceptions import InvalidSignatureError, PyJWTError

    verifier: Any = public
    try:
        _jws().decode_complete(text, verifier, [_ALGORITHM])
    except InvalidSignatureError as error:
        raise BadTokenError("signature") from error
    except (PyJWTError, ValueError) as error:
        raise BadTokenError("malformed") from error


@lru_cache(maxsize=1)
def _jws() -> PyJWS:
    """PyJWT (66 ms to import) with a single algorithm, whose keys are ours."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from jwt.algorithms import OKPAlgorithm
    from jwt.api_jws import PyJWS

    class Ed25519(OKPAlgorithm):
        """Ed25519 alone: an ``IdentityKey`` signs, 32 raw bytes verify."""

        def prepare_key(self, key: Any) -> Any:
            return key if isinstance(key, IdentityKey) else Ed25519PublicKey.from_public_bytes(key)

    tool = PyJWS(algorithms=[])
    tool.register_algorithm(_ALGORITHM, Ed25519())
    return tool
