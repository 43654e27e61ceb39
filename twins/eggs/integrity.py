"""The integrity layer: which bytes an egg consists of, said by whom. Readers of older shapes ignore it.

Inside an egg it is the member ``integrity.json``, the last one, over every other member. Beside a file
whose shape admits nothing more it is ``FILE.sig``, over that one file.

    {"schema": "rappd-integrity/1.0", "files": {name: sha256}, "signed_at": "2026-11-22T04:34:00Z",
     "signer": {"fingerprint": 64 hex, "public_key": 64 hex}, "signature": 128 hex}

``signer`` and ``signature`` come together or not at all. The signature is Ed25519 over ``DOMAIN`` and the
object without ``signature``, as JSON without spaces and with sorted keys; the file has that same form, so
that no reader can understand it differently from the one who signed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from envelopes.identity.keys import IdentityKey, fingerprint_of, verify
from twins.errors import BadEggError

SCHEMA: Final = "rappd-integrity/1.0"
MEMBER: Final = "integrity.json"
"""The member's name in an egg."""
SIGNATURE_SUFFIX: Final = ".sig"
"""The suffix of the file that lies beside the one it is about."""
DOMAIN: Final = b"rappd/egg-integrity\n"

_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z")
_KEYS = {"schema", "files", "signed_at"}
_SIGNED_KEYS = _KEYS | {"signer", "signature"}


@dataclass(slots=True, frozen=True)
class SignedManifest:
    """An integrity layer that was read and whose signature, if it has one, holds.

    ``signer``: fingerprint (64 hex) of the key, "" without one. Whether to trust it is another question.
    """

    files: Mapping[str, str]
    signer: str
    signed_at: str

    def compare(self, actual: Mapping[str, str]) -> None:
        """Raises ``BadEggError`` unless ``actual`` (name to SHA-256, the layer itself left out) is exactly this."""
        for name in sorted(self.files.keys() | actual.keys()):
            if self.files.get(name) != actual.get(name):
                raise BadEggError(f"The egg is damaged ({name}); nothing was written.", do="Get it again.")

    def covers(self, digest: str) -> None:
        """Raises ``BadEggError`` unless this lies beside a file of that SHA-256. The file may have been renamed."""
        if list(self.files.values()) != [digest]:
            raise BadEggError("The signature beside this file is not its own.", do="Get both again.")


def seal(files: Mapping[str, str], *, at: str, key: IdentityKey | None) -> bytes:
    """The layer over ``files`` (name to SHA-256 in hex), signed when a key is given.

    ``at``: the moment, ``YYYY-MM-DDTHH:MM:SSZ``. Raises ``ValueError`` for what ``check`` would refuse.
    """
    document: dict[str, Any] = {"schema": SCHEMA, "files": dict(files), "signed_at": at}
    if key is not None:
        document["signer"] = {"fingerprint": key.fingerprint, "public_key": key.public.hex()}
        document["signature"] = key.sign(DOMAIN + _canonical(document)).hex()
    fault = _fault(document)
    if fault:
        raise ValueError(fault)
    return _canonical(document)


def check(octets: bytes) -> SignedManifest:
    """Reads a layer. Raises ``BadEggError`` when it is malformed or its signature does not hold."""
    try:
        document = orjson.loads(octets)
    except orjson.JSONDecodeError as error:
        raise _refused("is not JSON") from error
    if not isinstance(document, dict):
        raise _refused("is not an object")
    fault = _fault(document)
    if fault:
        raise _refused(fault)
    if _canonical(document) != octets:
        raise _refused("is not in its one form")
    signer = ""
    if "signer" in document:
        public = bytes.fromhex(document["signer"]["public_key"])
        # In the one form this text stands there once: no hash is as long, and quotes in names are escaped.
        unsigned = octets.replace(b'"signature":"%b",' % document["signature"].encode(), b"")
        if not verify(public, bytes.fromhex(document["signature"]), DOMAIN + unsigned):
            raise BadEggError("The egg's signature does not hold; nothing was written.", do="Don't use it.")
        signer = document["signer"]["fingerprint"]
    return SignedManifest(document["files"], signer, document["signed_at"])


def _fault(document: dict[str, Any]) -> str:
    """The error in the object's shape, "" for none."""
    if document.get("schema") != SCHEMA:
        return f"is not of schema {SCHEMA}"
    if document.keys() not in (_KEYS, _SIGNED_KEYS):
        return "lacks a key, or has one too many"
    if not isinstance(document["signed_at"], str) or not _MOMENT.fullmatch(document["signed_at"]):
        return "names no moment"
    files = document["files"]
    if not isinstance(files, dict) or MEMBER in files or "" in files:
        return "does not list the files"
    if not are_digests(files.values()):
        return "holds something else than SHA-256 hashes"
    if "signer" not in document:
        return ""
    signer = document["signer"]
    if not isinstance(signer, dict) or signer.keys() != {"fingerprint", "public_key"}:
        return "does not name the signer"
    if not _is_hex(signer["public_key"], 64) or not _is_hex(document["signature"], 128):
        return "does not hold a key and a signature"
    if signer["fingerprint"] != fingerprint_of(bytes.fromhex(signer["public_key"])):
        return "names a signer that is not the key's"
    return ""


def _is_hex(text: object, digits: int) -> bool:
    return (
        isinstance(text, str)
        and len(text) == digits
        and text.isascii()
        and not text.encode().translate(None, b"0123456789abcdef")
    )


def _canonical(document: dict[str, Any]) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)


def _refused(why: str) -> BadEggError:
    return BadEggError(f"The egg's integrity layer {why}; nothing was written.", do="Get it again.")


_DIGITS = 64


def are_digests(found: Collection[object]) -> bool:
    """True when each is 64 digits in small hexadecimal."""
    try:
        joined = "".join(found)  # type: ignore[arg-type]  # what is no text is refused here
    except TypeError:
        return False
    alike = len(joined) == _DIGITS * len(found) and all(map(_DIGITS.__eq__, map(len, found)))  # type: ignore[arg-type]
    return alike and joined.isascii() and not joined.encode().translate(None, b"0123456789abcdef")
