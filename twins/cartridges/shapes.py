"""The three shapes of a ``.rappter.egg``, told apart by what is in them and never by a file's name.

SEED   the cartridge document's own: ``{"schema": "rappter-egg/1.0", id, name, stage, stats, …}``
BUDDY  what the published Buddy writes: ``{"_meta": {"type": "rappter.egg", …}, "organism": {…}}``
SPEC   Egg Spec v1: ``{"_format": "egg", "_schema_version": 1, organism, body, lineage, validation}``
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from twins.cartridges.field_specs import (
    COUNT,
    DIGEST,
    FLAG,
    LIST,
    NAME,
    NUMBER,
    OBJECT,
    STAGE,
    TEXT,
    check,
    exactly,
)
from twins.cartridges.json_documents import Document
from twins.errors import BadCartridgeError

SEED_SCHEMA = "rappter-egg/1.0"
BUDDY_TYPE = "rappter.egg"
CARRIED = "_rappd"
"""The key under which a document carries what its shape has no words for."""


class Shape(StrEnum):
    """One of the three shapes of a document; the value is what carries its name in files."""

    SEED = "rappter-egg/1.0"
    BUDDY = "rappter.egg"
    SPEC = "egg/1"


ORGANISM = {
    "name": NAME,
    "stage": STAGE,
    "mood": NUMBER,
    "energy": NUMBER,
    "xp": NUMBER,
    "social": NUMBER,
    "frames_survived": COUNT,
    "posts_made": COUNT,
    "comments_made": COUNT,
    "hatched_at": TEXT.or_null(),
    "last_fed": TEXT.or_null(),
    "last_petted": TEXT.or_null(),
    "last_action": TEXT.or_null(),
    "personality": LIST,
    "memories": LIST,
    "github_user": TEXT.or_null(),
    "created_at": TEXT.or_null(),
    "context_memory": LIST,
    "long_memory": LIST,
    "soul_notes": TEXT,
}
"""The published fields of a buddy, in their published order."""

SEED_FIELDS = {
    "schema": exactly(SEED_SCHEMA),
    "id": NAME,
    "name": NAME,
    "stage": STAGE,
    "stats": OBJECT,
    "skills": LIST,
    "personality": TEXT,
    "memory": LIST,
    "code": OBJECT,
    "code.lang": TEXT,
    "code.entry": TEXT,
    "code.agents_loaded": LIST,
    "continuation": OBJECT,
    "continuation.frame": COUNT,
    "continuation.pending_inputs": LIST,
    "lineage": OBJECT,
    "lineage.hatched_at": TEXT.or_null(),
    "lineage.hatched_in": TEXT.or_null(),
    "lineage.evolutions": LIST,
}
BUDDY_FIELDS = {
    "_meta": OBJECT,
    "_meta.version": exactly(1),
    "_meta.exported_at": TEXT.or_null(),
    "organism": OBJECT,
    **{f"organism.{key}": wanted for key, wanted in ORGANISM.items()},
}
SPEC_FIELDS = {
    "_format": exactly("egg"),
    "_schema_version": exactly(1),
    "organism": OBJECT,
    "organism.slug": NAME,
    "organism.species": NAME,
    "organism.instance": NAME,
    "organism.scale": NAME,
    "organism.name": TEXT.or_null(),
    "body": OBJECT,
    "body.kind": exactly("cartridge_xml", "state_json", "hybrid"),
    "body.filename": TEXT,
    "body.sha256": DIGEST,
    "body.size_bytes": COUNT,
    "lineage": OBJECT,
    "lineage.parent_egg_sha256": DIGEST.or_null(),
    "validation": OBJECT,
    "validation.ok": FLAG,
    "validation.issues": LIST,
}
_TABLES = {
    Shape.SEED: (SEED_FIELDS, ("name", "stage")),
    Shape.BUDDY: (BUDDY_FIELDS, ("organism",)),
    Shape.SPEC: (
        SPEC_FIELDS,
        ("_schema_version", "organism", "body", "body.kind", "body.content", "body.sha256"),
    ),
}
_FRAMEWORK = {
    Shape.SEED: (),
    Shape.BUDDY: ("_meta", "organism"),
    Shape.SPEC: ("organism", "body", "body.kind", "body.content"),
}


def shape_of(document: Document) -> Shape | None:
    """The shape of a document; None when it is no ``.rappter.egg`` at all.

    Raises ``BadCartridgeError`` for a document that claims more than one.
    """
    meta, organism = document.get("_meta"), document.get("organism")
    found = []
    if document.get("schema") == SEED_SCHEMA:
        found.append(Shape.SEED)
    if isinstance(meta, dict) and meta.get("type") == BUDDY_TYPE:
        found.append(Shape.BUDDY)
    if document.get("_format") == "egg" and not _is_neighborhood(document, organism):
        found.append(Shape.SPEC)
    if len(found) > 1:
        raise BadCartridgeError(
            f"A cartridge cannot be {found[0]} and {found[1]} at once; nothing was loaded.",
            do="Get it again.",
        )
    return found[0] if found else None


def checked(document: Document, *, name: str = "The cartridge") -> Shape:
    """The shape, after every field it names was found to be what it should be. Raises ``BadCartridgeError``."""
    shape = shape_of(document)
    if shape is None:
        raise BadCartridgeError(f"{name} is no .rappter.egg.", do=f"rappd egg inspect {name}")
    check_fields(document, shape, name=name)
    return shape


def check_fields(
    document: Document, shape: Shape, *, unfinished: bool = False, name: str = "The cartridge"
) -> None:
    """Raises ``BadCartridgeError`` unless the fields are what this shape wants; an ``unfinished`` document may still lack some."""
    fields, required = _TABLES[shape]
    if shape is Shape.SPEC:
        fields = {**fields, "body.content": _CONTENT.get(_kind(document), OBJECT)}
    check(document, fields, required=_FRAMEWORK[shape] if unfinished else required, name=name)


def _kind(document: Document) -> str:
    body = document.get("body")
    kind = body.get("kind") if isinstance(body, dict) else None
    return kind if isinstance(kind, str) else ""


def _is_neighborhood(document: Document, organism: Any) -> bool:
    kind = organism.get("kind") if isinstance(organism, dict) else None
    return kind == "neighborhood" or "_content_sha256" in document


_CONTENT = {"cartridge_xml": TEXT, "state_json": OBJECT, "hybrid": OBJECT}
