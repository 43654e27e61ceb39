"""A record signed by the machine that sends it, for hops that the sender does not make itself."""

from __future__ import annotations

import re
from typing import Any

from envelopes.codecs.canonical import canonical
from envelopes.codecs.emergence import as_object
from envelopes.envelope import SIG, Envelope, is_signature
from envelopes.errors import BadSignatureError, MalformedError
from envelopes.identity.keys import IdentityKey, fingerprint_of
from envelopes.identity.keys import verify as _holds

DOMAIN = b"rappd/envelope\n"
WINDOW = 300
"""Seconds that the signer's clock and the reader's may differ."""

_SIXTEEN_DIGITS = re.compile(rb"[0-9]{16}").search


def sign(envelope: Envelope, key: IdentityKey, now: float) -> Envelope:
    """The record with ``_x_sig``, in place of one that it had. ``now`` is seconds since 1970.

    ``{alg, kid, key, t, s}``: ``s`` over ``rappd/envelope\\n`` and the canonical form (RFC 8785) of
    everything else, the moment ``t`` included. Raises ``MalformedError`` for data that has no one such form.
    """
    fields: dict[str, Any] = {
        "alg": "Ed25519",
        "kid": key.fingerprint,
        "key": key.public.hex(),
        "t": int(now),
    }
    try:
        signature = key.sign(_signed(envelope, fields))
    except ValueError as error:
        raise MalformedError(
            f"'data' cannot be signed: {error}.", do="Send JSON alone.", key="data"
        ) from error
    return envelope.extended(**{SIG: {**fields, "s": signature.hex()}})


def verify(envelope: Envelope, now: float, *, window: float = WINDOW) -> str:
    """The fingerprint of the key that signed exactly this envelope. Raises ``BadSignatureError``.

    That the fingerprint is one to trust, that ``from`` belongs to it, and that the id is new, are the
    caller's to check.
    """
    signature = envelope.extensions.get(SIG)
    if signature is None:
        raise BadSignatureError("The record is not signed.", do="Sign it, or send it yourself.")
    if not is_signature(signature):
        raise BadSignatureError(
            "'_x_sig' is no signature.", do="Send {alg, kid, key, t, s}, hex in lower case."
        )
    public = bytes.fromhex(signature["key"])
    if fingerprint_of(public) != signature["kid"]:
        raise BadSignatureError(
            "'_x_sig' names another key than it shows.", do="Send the key of the fingerprint."
        )
    if not abs(now - signature["t"]) <= window:
        raise BadSignatureError(
            "The signature is too old, or from the future.", do="Set the clock, and sign again."
        )
    try:
        holds = _holds(public, bytes.fromhex(signature["s"]), _signed(envelope, signature))
    except ValueError:
        holds = False
    if not holds:
        raise BadSignatureError("The signature is not over this record.", do="Send it as it was signed.")
    return fingerprint_of(public)


def _signed(envelope: Envelope, fields: dict[str, Any]) -> bytes:
    """Otherwise a captured envelope could be dated anew again and again."""
    unsigned: dict[str, Any] = as_object(envelope)
    unsigned[SIG] = {name: value for name, value in fields.items() if name != "s"}
    octets = canonical(unsigned)
    if _SIXTEEN_DIGITS(octets) and _rounds(unsigned):
        raise ValueError("an integer is beyond 2**53")
    return DOMAIN + octets


def _rounds(value: Any) -> bool:
    """True when the canonical form, which is binary64, changes an integer: two values, one signature."""
    waiting = [value]
    for one in waiting:
        if isinstance(one, dict):
            waiting.extend(one.values())
        elif isinstance(one, (list, tuple)):
            waiting.extend(one)
        elif isinstance(one, int) and float(one) != one:
            return True
    return False
