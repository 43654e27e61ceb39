"""The provenance envelope that some published eggs carry in their manifest: ``rapp-egg-provenance/1.0``."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from twins.eggs.readers.detected import DetectedEgg, inside
from twins.zip.names import shown


def file_hashes(found: DetectedEgg) -> dict[str, Any]:
    """Path to SHA-256 as the manifest's ``provenance`` lists them; empty without one.

    ``manifest_hash`` must hold under one of its two published definitions: over the sorted lines
    ``path TAB hash``, or over the object as Python prints it with sorted keys. Raises ``BadEggError``.
    """
    provenance = inside(found.manifest, "provenance")
    if not provenance:
        return {}
    scheme = provenance.get("scheme", "sha256")
    hashes = provenance.get("file_hashes")
    if scheme != "sha256":
        found.notes.append(f'Its hashes are of the scheme "{shown(str(scheme))}" and were not compared.')
        return {}
    if not isinstance(hashes, dict) or not set(map(type, hashes.values())) <= {str}:
        raise found.damaged("its provenance lists no files")
    said = provenance.get("manifest_hash")
    if said is None:
        found.notes.append("Its list of hashes has no hash of its own.")
    elif said != by_lines(hashes) and said != by_object(hashes):
        raise found.damaged("the hash of its list of files")
    return hashes


def by_lines(hashes: dict[str, str]) -> str:
    """``manifest_hash`` as the published packer makes it."""
    return _sha256("\n".join(sorted(map("\t".join, hashes.items()))).encode())


def by_object(hashes: dict[str, str]) -> str:
    """``manifest_hash`` as the published conformance test makes it."""
    return _sha256(json.dumps(hashes, sort_keys=True).encode())


def _sha256(octets: bytes) -> str:
    return hashlib.sha256(octets).hexdigest()
