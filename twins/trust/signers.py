"""Keys whose code runs here without being read first: those the operator trusts by name, until revoked."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import orjson

from agents.storage.atomic_write import write_atomically
from twins.errors import BadFileError, NoSuchFileError
from twins.installer.errors import BadFingerprintError
from twins.trust.quarantine import CachedFile
from twins.workspace.identity_file import proper_name, utc
from twins.workspace.workspace import exclusive_lock

SCHEMA = "rappd-signers/1.0"
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


class Signer(msgspec.Struct, frozen=True):
    """One trusted key. ``since``: when it was trusted."""

    fingerprint: str
    name: str
    since: str


class Signers:
    """The file of trusted keys, ``$RAPP_HOME/signers.json``. Other processes' changes are seen."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: CachedFile[dict[str, Signer]] = CachedFile(path, _decode, dict)

    def trust(self, fingerprint: str, name: str, *, now: datetime | None = None) -> Signer:
        """Trusts what this key signs from now on. Raises ``BadFingerprintError``, ``BadNameError``."""
        signer = Signer(proper_fingerprint(fingerprint), proper_name(name), utc(now or datetime.now(UTC)))
        with exclusive_lock(self._path.parent):
            self._write({**self._file.content(), signer.fingerprint: signer})
        return signer

    def revoke(self, fingerprint: str) -> Signer:
        """Ends the trust; what the key signed before stays as it is. Raises ``NoSuchFileError``."""
        proper_fingerprint(fingerprint)
        with exclusive_lock(self._path.parent):
            known = dict(self._file.content())
            signer = known.pop(fingerprint, None)
            if signer is None:
                raise NoSuchFileError(f"No key {fingerprint[:16]}… is trusted here.", do="rappd egg signers")
            self._write(known)
        return signer

    def is_trusted(self, fingerprint: str) -> bool:
        """True when the operator trusts that key."""
        return fingerprint in self._file.content()

    def name_of(self, fingerprint: str) -> str:
        """The operator's name for a trusted key; "" for any other."""
        signer = self._file.content().get(fingerprint)
        return signer.name if signer else ""

    def listing(self) -> list[Signer]:
        """All trusted keys, by name."""
        return sorted(self._file.content().values(), key=lambda signer: (signer.name, signer.fingerprint))

    def _write(self, signers: dict[str, Signer]) -> None:
        rows = {key: {"name": one.name, "since": one.since} for key, one in sorted(signers.items())}
        content = orjson.dumps({"schema": SCHEMA, "signers": rows}, option=orjson.OPT_INDENT_2)
        write_atomically(self._path, content)
        self._file.forget()


def proper_fingerprint(text: str) -> str:
    """``text`` itself, if it is a key's fingerprint: 64 hex digits in lower case. Raises ``BadFingerprintError``."""
    if not isinstance(text, str) or not _FINGERPRINT.fullmatch(text):
        raise BadFingerprintError(
            f"{str(text)[:80]!r} is not a fingerprint.", do="A fingerprint is 64 digits of 0-9, a-f."
        )
    return text


def _decode(content: bytes) -> dict[str, Signer]:
    try:
        found: Any = orjson.loads(content)
        return {
            proper_fingerprint(key): Signer(key, str(row["name"]), str(row["since"]))
            for key, row in found["signers"].items()
        }
    except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError, BadFingerprintError) as error:
        raise BadFileError(
            "signers.json is damaged; no key is trusted until it is mended.",
            do="Restore it, or delete it and trust keys anew.",
        ) from error
