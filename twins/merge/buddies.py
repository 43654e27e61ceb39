"""Two lives of one buddy made one: experience and memories add up, energy and mood stay what they can be."""

from __future__ import annotations

from twins.cartridges.buddy_state import FULL
from twins.cartridges.json_documents import Document
from twins.cartridges.shape_conversion import convert
from twins.cartridges.shapes import ORGANISM, Shape, checked
from twins.merge.json_merge import MergeResult, merge


def merge_buddies(base: Document | None, ours: Document, theirs: Document) -> MergeResult:
    """``.rappter.egg`` documents of any shape as one in the Buddy's. Raises ``BadCartridgeError``, ``TwinConflictError``."""
    versions = [None if one is None else convert(one, Shape.BUDDY) for one in (base, ours, theirs)]
    assert versions[1] is not None
    assert versions[2] is not None
    joined = merge(versions[0], versions[1], versions[2])
    organism = joined.document["organism"]
    for key in ("energy", "mood"):
        if key in organism and ORGANISM[key].test(organism[key]):
            organism[key] = max(0, min(FULL, organism[key]))
    checked(joined.document)
    return joined
