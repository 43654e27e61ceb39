"""From one shape of a ``.rappter.egg`` to another, and back without loss.

What two shapes both have words for is translated. What only the old shape can say is carried along under
``_rappd``, as the edits that restore it. On the way back those edits are made where they still fit, so a
document that nothing happened to comes back as it was, and one that lived on keeps its life. The published
Buddy knows neither shape but its own and keeps every key of the organism: there the carried part lies.

    "_rappd": {"<shape>": {"edits": [edit, …], "without": [path, …]}}

``without`` names what the old shape did not have, though the new one always has it. A hash that was wrong
is not carried: it is made anew.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import msgspec

from twins.cartridges import buddy_schema, egg_spec, json_patch, seed_key_map, spec_key_map
from twins.cartridges.json_documents import Document, same
from twins.cartridges.shapes import CARRIED, ORGANISM, Shape, check_fields, checked, shape_of
from twins.errors import BadCartridgeError


def convert(document: Document, to: Shape) -> Document:
    """``document`` in the shape ``to``; the given one stays untouched.

    Raises ``BadCartridgeError`` when it has none of the three shapes, or carries what nobody wrote.
    """
    shape = checked(document)
    if shape is to:
        return copy.deepcopy(document)
    if Shape.BUDDY not in (shape, to):
        return convert(_cross(document, shape, Shape.BUDDY), to)
    return _cross(document, shape, to)


class _KeyMap(msgspec.Struct, frozen=True):
    """A conversion of one shape to the keys of the Buddy's shape, and back."""

    to_buddy: Callable[[Document], Document]
    from_buddy: Callable[[Document], Document]
    complete: Callable[[Document], None]
    keys: tuple[str, ...]


_WORDS = {
    Shape.SEED: _KeyMap(
        seed_key_map.to_buddy, seed_key_map.from_buddy, seed_key_map.complete, seed_key_map.KEYS
    ),
    Shape.SPEC: _KeyMap(
        spec_key_map.to_buddy, spec_key_map.from_buddy, spec_key_map.complete, spec_key_map.KEYS
    ),
    Shape.BUDDY: _KeyMap(copy.deepcopy, copy.deepcopy, buddy_schema.complete, ("_meta", "organism")),
}


def _cross(document: Document, shape: Shape, to: Shape) -> Document:
    old, carried = _unpacked(document, shape)
    try:
        new = _translated(old, shape, to)
        kept = carried.pop(to.value, None)
        if kept is not None:
            json_patch.check(kept["edits"])
            new = json_patch.apply(kept["edits"], new)
            if not isinstance(new, dict):
                raise ValueError("the edits leave no document")
        check_fields(new, to, unfinished=True)
        known = copy.deepcopy(new)
        _WORDS[to].complete(new)
        for path in kept["without"] if kept is not None else ():
            if not json_patch.has(known, path):
                json_patch.remove(new, path)
        if to is Shape.SPEC:
            egg_spec.seal(new)
        if shape_of(new) is not to:
            raise ValueError("the edits make another document of it")
        check_fields(new, to)
        rest = _lost(old, new, shape, to)
    except ValueError as error:
        raise BadCartridgeError(
            "What the cartridge carries for another shape is damaged; nothing was loaded.",
            do=f"Take out {CARRIED}, or get it again.",
        ) from error
    if rest is not None:
        carried[shape.value] = rest
    if carried:
        _holder(new, to)[CARRIED] = carried
    return _ordered(new, to)


def _lost(old: Document, new: Document, shape: Shape, to: Shape) -> dict[str, Any] | None:
    """The parts of ``old`` that ``new`` cannot hold: the way back is walked and compared.

    What would be filled in anyway is not carried; and since what is filled in can depend on what is
    carried, the way back is walked until nothing is missing.
    """
    back = _translated(new, to, shape)
    missing = json_patch.between(back, old, whole=_exchanged_whole)
    restoring = [edit for edit in missing if "was" in edit]
    missing = [edit for edit in missing if "was" not in edit]
    while True:
        full = json_patch.apply(restoring, back)
        _WORDS[shape].complete(full)
        lacking = [edit for edit in missing if not _lies(full, edit)]
        if not lacking:
            break
        restoring += lacking
        missing = [edit for edit in missing if edit not in lacking]
    without = [
        edit["at"]
        for edit in json_patch.between(full, old)
        if "is" not in edit and all(isinstance(step, str) for step in edit["at"])
    ]
    return {"edits": restoring, "without": without} if restoring or without else None


def _lies(document: Document, edit: json_patch.Edit) -> bool:
    return json_patch.has(document, edit["at"]) and same(json_patch.get(document, edit["at"]), edit["is"])


def _translated(document: Document, shape: Shape, to: Shape) -> Document:
    if to is Shape.BUDDY:
        return _WORDS[shape].to_buddy(document)
    return _WORDS[to].from_buddy(document)


def _unpacked(document: Document, shape: Shape) -> tuple[Document, dict[str, Any]]:
    """A copy without the carried part, and the carried part."""
    plain = copy.deepcopy(document)
    carried = _holder(plain, shape).pop(CARRIED, {})
    if not isinstance(carried, dict) or not all(
        isinstance(kept, dict)
        and kept.keys() == {"edits", "without"}
        and isinstance(kept["without"], list)
        and all(isinstance(path, list) for path in kept["without"])
        for kept in carried.values()
    ):
        raise BadCartridgeError(
            f"{CARRIED} in the cartridge is not what was written there; nothing was loaded.",
            do=f"Take out {CARRIED}, or get it again.",
        )
    if shape is Shape.SPEC:
        for key in ("sha256", "size_bytes"):
            plain["body"].pop(key, None)
    return plain, carried


def _holder(document: Document, shape: Shape) -> Document:
    """The holder of the carried part: the organism in the Buddy's shape, else the document."""
    holder: Document = document["organism"] if shape is Shape.BUDDY else document
    return holder


def _exchanged_whole(at: json_patch.Path, before: Any, after: Any) -> bool:
    """Lists, because their places shift while a document lives; and a body of another kind, because it is another body.

    Neither is patched together from two.
    """
    if isinstance(before, list):
        return True
    return at == ["body"] and isinstance(before, dict) and before.get("kind") != after.get("kind")


def _ordered(document: Document, shape: Shape) -> Document:
    """Published keys in their published order, then all others as they were."""
    if shape is Shape.BUDDY:
        document["organism"] = _first(document["organism"], tuple(ORGANISM))
    elif shape is Shape.SPEC:
        document["organism"] = _first(document["organism"], egg_spec.ORGANISM_KEYS)
        document["body"] = _first(document["body"], egg_spec.BODY_KEYS)
        if "lineage" in document:
            document["lineage"] = _first(document["lineage"], egg_spec.LINEAGE_KEYS)
    return _first(document, _WORDS[shape].keys)


def _first(found: Document, keys: tuple[str, ...]) -> Document:
    return {key: found[key] for key in keys if key in found} | found
