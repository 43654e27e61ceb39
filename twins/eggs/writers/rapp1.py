"""The manifest of a ``rapp/1-egg`` (RAPP/1 §9): seven keys, canonical bytes, first in the archive."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from envelopes.codecs.canonical import canonical
from twins.errors import BadFileError, BadRappidError
from twins.workspace.rappid import Rappid, widened

SPACE = b"rapp/1:egg\n"
"""The octets before a file's content when it is hashed."""
MAX_BYTES = 1 << 20


def manifest(variant: str, rappid: Rappid, contents: Mapping[str, str], *, at: datetime) -> bytes:
    """The manifest over ``contents`` (path to hash under ``SPACE``), unsigned.

    An older rappid goes on under its widened form; the payload then says what it was. Raises ``BadFileError``
    for what RAPP/1 cannot carry.
    """
    strict, payload = _strict(rappid)
    octets = canonical(
        {
            "schema": "rapp/1-egg",
            "variant": variant,
            "rappid": strict.text,
            "created_utc": _moment(at),
            "contents": [{"path": path, "hash": contents[path]} for path in in_order(contents)],
            "payload": payload,
            "sig": None,
        }
    )
    if len(octets) > MAX_BYTES:
        raise BadFileError("These are too many files for a RAPP/1 egg.", do="Pack another kind of egg.")
    return octets


def in_order(paths: Mapping[str, object]) -> list[str]:
    """Paths as the archive and the manifest have them: by their UTF-8 bytes."""
    return sorted(paths, key=str.encode)


def _strict(rappid: Rappid) -> tuple[Rappid, dict[str, str]]:
    if rappid.strict:
        return rappid, {}
    try:
        return widened(rappid, owner="local", slug="twin"), {"_migrated_from": rappid.text}
    except BadRappidError as error:
        raise BadFileError(
            f"RAPP/1 has no form for {rappid.text[:80]}.", do="Pack another kind of egg."
        ) from error


def _moment(at: datetime) -> str:
    at = at.astimezone(UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
