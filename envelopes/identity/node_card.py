"""The node card of a machine, in HELLO and in pairing; its reader can verify all of it but the name."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any, Final, Self

import msgspec

from envelopes.errors import BadCertificateError, BadNodeCardError
from envelopes.identity.certificates import MOST_BYTES, identity_of
from envelopes.identity.keys import IdentityKey, fingerprint_of, verify

SCHEMA: Final = "rappd-introduction/1.0"
SEALING: Final = b"rappd/sealing-key\n"
"""The prefix of the recipient text that the identity signs."""
LONGEST_NAME: Final = 60

_TYPES: Final[dict[str, type]] = {
    "schema": str,
    "name": str,
    "fingerprint": str,
    "public_key": str,
    "certificate": str,
    "sealing_key": str,
    "sealing_signature": str,
    "port": int,
}
_RECIPIENT = re.compile(r"age1[02-9ac-hj-np-z]{58}")  # bech32 of an X25519 key


class NodeCard(msgspec.Struct, frozen=True):
    """A machine in its own words. Only after ``check()`` is anything in it more than a claim.

    ``public_key`` is raw (32 bytes), ``certificate`` DER, ``sealing_key`` an age recipient and
    ``sealing_signature`` (64 bytes) the identity's over it, both empty on a machine that takes no sealed eggs;
    ``port`` is where its federation listener is, 0 on one that has none.
    """

    name: str
    fingerprint: str
    public_key: bytes
    certificate: bytes
    sealing_key: str
    sealing_signature: bytes
    port: int

    def check(self) -> Self:
        """Itself, when the one key stands behind all of it. Raises ``BadNodeCardError``."""
        _check_shape(self)
        if fingerprint_of(self.public_key) != self.fingerprint:
            raise _bad("its fingerprint is another key's")
        try:
            bound = identity_of(self.certificate)
        except BadCertificateError as error:
            raise BadNodeCardError(str(error), do=error.do) from error
        if bound != self.public_key:
            raise _bad("its connections belong to another machine")
        recipient = self.sealing_key
        if recipient and not verify(self.public_key, self.sealing_signature, SEALING + recipient.encode()):
            raise _bad("it did not sign the key that eggs are sealed with")
        return self

    def to_json(self) -> dict[str, Any]:
        """The object that travels; bytes as hex, the certificate as base64."""
        return {
            "schema": SCHEMA,
            "name": self.name,
            "fingerprint": self.fingerprint,
            "public_key": self.public_key.hex(),
            "certificate": base64.b64encode(self.certificate).decode(),
            "sealing_key": self.sealing_key,
            "sealing_signature": self.sealing_signature.hex(),
            "port": self.port,
        }

    @classmethod
    def from_json(cls, value: object) -> NodeCard:
        """An object as it came, unchecked. One introduction has one form: ``from_json(x).to_json() == x``.

        Raises ``BadNodeCardError`` for missing, unknown or mistyped keys, and for sizes out of bounds.
        """
        if not isinstance(value, dict):
            raise _bad("it is no object")
        for key, kind in _TYPES.items():
            if type(value.get(key)) is not kind:  # True is no port
                raise _bad(f"{key} is missing or of another type")
        if len(value) != len(_TYPES):
            raise _bad("it has keys that nobody knows")
        if value["schema"] != SCHEMA:
            raise _bad("it is of another version")
        one = cls(
            name=value["name"],
            fingerprint=value["fingerprint"],
            public_key=_unhex(value, "public_key", 32),
            certificate=_unbase64(value, "certificate"),
            sealing_key=value["sealing_key"],
            sealing_signature=_unhex(value, "sealing_signature", 64 if value["sealing_key"] else 0),
            port=value["port"],
        )
        _check_shape(one)
        return one


def introduce(
    identity: IdentityKey, certificate_der: bytes, sealing_key: str, name: str, port: int
) -> NodeCard:
    """This machine's own introduction. Raises ``BadNodeCardError`` when a part is not fit to be shown."""
    return NodeCard(
        name=name,
        fingerprint=identity.fingerprint,
        public_key=identity.public,
        certificate=certificate_der,
        sealing_key=sealing_key,
        sealing_signature=identity.sign(SEALING + sealing_key.encode()),
        port=port,
    ).check()


def _check_shape(one: NodeCard) -> None:
    if not 0 < len(one.name) <= LONGEST_NAME or not one.name.isprintable() or one.name != one.name.strip():
        raise _bad("its name is empty, too long, or cannot be shown")
    if not re.fullmatch(r"[0-9a-f]{64}", one.fingerprint):
        raise _bad("its fingerprint is none")
    if not 0 < len(one.certificate) <= MOST_BYTES:
        raise _bad("its certificate is empty or too long")
    if one.sealing_key and not _RECIPIENT.fullmatch(one.sealing_key):
        raise _bad("its sealing key is none")
    if bool(one.sealing_key) != bool(one.sealing_signature):
        raise _bad("it has a sealing key without its signature, or a signature alone")
    if not 0 <= one.port < 65536:
        raise _bad("its port is none")


def _unhex(value: dict[str, Any], key: str, size: int) -> bytes:
    if not re.fullmatch(r"[0-9a-f]*", value[key]) or len(value[key]) != 2 * size:
        raise _bad(f"{key} is not {size} bytes in hex")
    return bytes.fromhex(value[key])


def _unbase64(value: dict[str, Any], key: str) -> bytes:
    text: str = value[key]
    if len(text) > 4 * MOST_BYTES // 3 + 4:
        raise _bad(f"{key} is too long")
    try:
        found = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise _bad(f"{key} is not base64") from error
    if base64.b64encode(found).decode() != text:  # several texts decode to the same bytes
        raise _bad(f"{key} is not base64")
    return found


def _bad(what: str) -> BadNodeCardError:
    return BadNodeCardError(
        f"The other machine's introduction does not hold: {what}.", do="Update both machines, try again."
    )
