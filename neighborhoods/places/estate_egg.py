"""The estate egg, ``brainstem-egg/2.3-estate``: ``estate.json`` and one complete egg for each member.

Of the private tier it carries the owner's pointer and nothing else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from envelopes.identity.keys import IdentityKey
from neighborhoods.places.estate_file import Estate
from twins.eggs import integrity
from twins.eggs.nested_eggs import FOLDER
from twins.eggs.writers.formats import EggMaker
from twins.eggs.writers.manifests import provenance
from twins.workspace.identity_file import indented, utc
from twins.zip.reader import Archive
from twins.zip.writer import ArchiveWriter

SCHEMA = "brainstem-egg/2.3-estate"
_README = """An estate: what its owner made or belongs to, and where it is to be found.

estate.json names everything by its rappid. Each folder in members/ is a complete egg.
With rappd: rappd egg plan FILE, then rappd egg hatch FILE.
"""


class MemberEgg(msgspec.Struct, frozen=True):
    """A packed egg that becomes a member. ``key`` is the end of its rappid and names its folder."""

    key: str
    rappid: str
    name: str
    path: Path


def write_estate_egg(
    file: BinaryIO,
    estate: Estate,
    members: Iterable[MemberEgg],
    *,
    at: datetime,
    key: IdentityKey | None,
    maker: EggMaker,
    private_pointer: str = "",
) -> int:
    """Writes the egg into ``file`` and returns its number of files. The same input gives the same content."""
    hashes: dict[str, str] = {}
    rows: list[dict[str, Any]] = []

    with ArchiveWriter(file, at=at) as writer:

        def add(name: str, content: Any) -> None:
            hashes[name] = writer.add(name, content).sha256

        add("estate.json", estate.encode())
        add("owner_rappid.json", indented({"schema": "rapp/1", "rappid": estate.owner or None}))
        add("README.md", _README.encode())
        for member in sorted(members, key=lambda one: one.key):
            with Archive.open(member.path) as archive:
                archive.look_through()
                manifest = json.loads(archive.read("manifest.json"))
                for name in archive.names:
                    add(f"{FOLDER}/{member.key}/{name}", archive.chunks(name))
            rows.append(_row(member, manifest))
        content = indented(_manifest(estate, rows, hashes, at, maker, private_pointer))
        listed = {**hashes, "manifest.json": writer.add("manifest.json", content).sha256}
        writer.add(integrity.MEMBER, integrity.seal(listed, at=utc(at), key=key))
        writer.finish()
    return len(listed)


def _row(member: MemberEgg, manifest: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "hash": member.key,
        "rappid": member.rappid,
        "name": member.name,
        "schema": manifest.get("schema"),
        "scale": manifest.get("scale") or manifest.get("type"),
        "path": f"{FOLDER}/{member.key}",
    }


def _manifest(
    estate: Estate,
    rows: list[dict[str, Any]],
    hashes: Mapping[str, str],
    at: datetime,
    maker: EggMaker,
    private_pointer: str,
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "scale": "estate",
        "type": "estate",
        "rapp_egg_version": "2.0",
        "name": f"estate of {maker.host or 'this machine'}",
        "owner_rappid": estate.owner or None,
        "estate_snapshot_at": utc(at),
        "host": maker.host,
        "created_by": maker.signature,
        "members": rows,
        "private_estate_pointer": private_pointer or None,
        "sha256": hashlib.sha256(estate.encode()).hexdigest(),
        "provenance": {
            **provenance(hashes, at, estate.owner or None),
            "state_at_seal": {
                "schema": "rapp-organism-state/1.0",
                "name": "estate",
                "kind": "estate",
                "incarnations": 0,
            },
        },
    }
