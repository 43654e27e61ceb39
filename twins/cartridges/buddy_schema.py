"""The Buddy's published shape: what a document of it always has."""

from __future__ import annotations

import copy
from typing import Any

from twins.cartridges.json_documents import Document
from twins.cartridges.shapes import BUDDY_TYPE

NAMELESS = "???"
NEWBORN: dict[str, Any] = {
    "name": NAMELESS,
    "stage": "egg",
    "mood": 50,
    "energy": 80,
    "xp": 0,
    "social": 0,
    "frames_survived": 0,
    "posts_made": 0,
    "comments_made": 0,
    "hatched_at": None,
    "last_fed": None,
    "last_petted": None,
    "last_action": None,
    "personality": [],
    "memories": [],
    "github_user": None,
    "created_at": None,
    "context_memory": [],
    "long_memory": [],
    "soul_notes": "",
}
"""An organism as it begins, as published."""
THRESHOLDS = {"egg": 0, "hatchling": 0, "juvenile": 50, "adult": 200, "elder": 1000}
"""The experience from which on a stage is reached, as published."""


def meta() -> dict[str, Any]:
    """The first fields of every document of this shape."""
    return {"type": BUDDY_TYPE, "version": 1, "format": ".rappter.egg"}


def complete(document: Document) -> None:
    """Fills in what the published Buddy expects and nothing else has said."""
    head = document["_meta"]
    for key, value in meta().items():
        head.setdefault(key, value)
    head.setdefault("exported_at", None)
    head.setdefault("description", "A Rappter Buddy.")
    organism = document["organism"]
    organism.setdefault("xp", THRESHOLDS[organism.get("stage", "egg")])
    for key, value in NEWBORN.items():
        organism.setdefault(key, copy.deepcopy(value))
