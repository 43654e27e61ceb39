"""Egg Spec v1: the hash of a body, an egg laid by another, the name of its file."""

from __future__ import annotations

import hashlib
from typing import Any

from twins.cartridges.json_documents import Document, canonical
from twins.errors import BadCartridgeError

ORGANISM_KEYS = ("slug", "species", "instance", "scale", "substrate", "name", "tagline", "population")
BODY_KEYS = ("kind", "filename", "content", "sha256", "size_bytes")
LINEAGE_KEYS = ("created_at", "created_by", "engine_version", "parent_egg_sha256", "birth_tick")


def body_octets(kind: str, content: Any) -> bytes:
    """The octets that a body's hash and size are of: XML as it is, anything else as canonical JSON."""
    return content.encode() if kind == "cartridge_xml" else canonical(content)


def seal(document: Document) -> None:
    """Writes the hash and the size of the body into ``document``."""
    body = document["body"]
    octets = body_octets(body["kind"], body["content"])
    body["sha256"] = hashlib.sha256(octets).hexdigest()
    body["size_bytes"] = len(octets)


def verify(document: Document, *, name: str = "The egg") -> None:
    """Raises ``BadCartridgeError`` unless hash and size are those of the body."""
    body = document["body"]
    octets = body_octets(body["kind"], body["content"])
    if body["sha256"] != hashlib.sha256(octets).hexdigest():
        raise BadCartridgeError(
            f"{name} is damaged, or was changed by hand (its body); nothing was loaded.",
            do="Get it again, or load it with --force.",
        )
    if body.get("size_bytes", len(octets)) != len(octets):
        raise BadCartridgeError(
            f"{name} says {body['size_bytes']} bytes and has {len(octets)}; nothing was loaded.",
            do="Get it again, or load it with --force.",
        )
