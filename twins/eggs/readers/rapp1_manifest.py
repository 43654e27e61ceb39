"""The manifest of a ``rapp/1-egg``: its shape to the letter, its one canonical form (RAPP/1 §9)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from envelopes.codecs.canonical import canonical
from envelopes.codecs.strict_json import levels
from twins.eggs.readers.detected_egg import DetectedEgg
from twins.eggs.readers.formats import RAPP1, quoted, unknown
from twins.errors import BadRappidError
from twins.fs.untrusted_names import safe_path, shown
from twins.workspace.rappid import Rappid

SCHEMA = "rapp/1-egg"
SPACE = b"rapp/1:egg\n"
"""The octets before a file's content when it is hashed."""

_KEYS = {"schema", "variant", "rappid", "created_utc", "contents", "payload", "sig"}
_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:[0-5]\d\.\d{3}Z")
_JWS = re.compile(r"[A-Za-z0-9_-]+\.\.[A-Za-z0-9_-]{86}")
_DEPTH = 64
_BYTES = 1 << 20


@dataclass(slots=True, frozen=True)
class Manifest:
    """A manifest that was checked. ``contents``: path to hash, in the order that is demanded."""

    variant: str
    rappid: Rappid
    contents: dict[str, str]
    payload: dict[str, Any]
    sig: str


def read_manifest(found: DetectedEgg) -> Manifest:
    """Checks ``found.manifest`` and the octets it was read from. Raises ``BadEggError``, ``unknown_egg``."""
    manifest = found.manifest
    variant = manifest.get("variant")
    if not isinstance(variant, str) or variant not in RAPP1:
        raise unknown(found.file, f'says schema "{SCHEMA}", variant {quoted(variant)}')
    if manifest.keys() != _KEYS:
        raise found.damaged("its manifest lacks a key, or has one too many")
    _check_form(found)
    rappid, at, sig = manifest["rappid"], manifest["created_utc"], manifest["sig"]
    try:
        parsed = Rappid.parse(rappid)
    except BadRappidError as error:
        raise found.damaged("the rappid in its manifest") from error
    if not parsed.strict:
        raise found.damaged("the rappid in its manifest")
    if not isinstance(at, str) or not _is_moment(at):
        raise found.damaged("the moment in its manifest")
    if manifest["payload"] is not None and not isinstance(manifest["payload"], dict):
        raise found.damaged("its payload")
    if sig is not None and (not isinstance(sig, str) or not sig):
        raise found.damaged("its signature")
    if sig:
        found.notes.append(
            "Its signature cannot be checked: no registry of keys is public."
            if _JWS.fullmatch(sig)
            else f"In the signature's place it says {shown(sig)}; it counts as unsigned."
        )
    return Manifest(variant, parsed, _contents(found), manifest["payload"] or {}, sig or "")


def demand_keys(found: DetectedEgg, payload: dict[str, Any], keys: Iterable[str]) -> None:
    """Raises ``BadEggError`` unless the payload has exactly these keys."""
    if payload.keys() != set(keys):
        raise found.damaged("its payload lacks a key, or has one too many")


def _check_form(found: DetectedEgg) -> None:
    if any(depth > _DEPTH for depth, _ in enumerate(levels(found.manifest), 1)):
        raise found.damaged("its manifest is nested too deep")
    try:
        form = canonical(found.manifest)
    except ValueError as error:
        raise found.damaged("its manifest has no canonical form") from error
    if form != found.octets or len(form) > _BYTES:
        raise found.damaged("its manifest is not in canonical form")


def _contents(found: DetectedEgg) -> dict[str, str]:
    contents = found.manifest["contents"]
    if not isinstance(contents, list):
        raise found.damaged("its list of files")
    listed: dict[str, str] = {}
    before = b""
    for one in contents:
        if not isinstance(one, dict) or one.keys() != {"path", "hash"} or not isinstance(one["path"], str):
            raise found.damaged("its list of files")
        path = safe_path(one["path"])
        octets = path.encode()
        if octets <= before or path == "manifest.json" or not unicodedata.is_normalized("NFC", path):
            raise found.damaged(f"{shown(path)} in its list of files")
        before = octets
        listed[path] = one["hash"]
    return listed


def _is_moment(text: str) -> bool:
    if not _MOMENT.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
