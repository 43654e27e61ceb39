"""Two cartridges side by side: what differs in what they hold, whatever shape each of them has."""

from __future__ import annotations

import copy
import difflib
from dataclasses import dataclass
from typing import Any

from twins.cartridges import json_patch
from twins.cartridges.json_documents import Document, canonical
from twins.cartridges.json_patch import Edit, Path
from twins.cartridges.lispy_file import is_lispy
from twins.cartridges.shape_conversion import convert
from twins.cartridges.shapes import CARRIED, Shape, checked

_IMAGE: Path = ["continuation", "image"]
_ENV, _ENV_WIRE = "env", "env_wire"
_WORTH = 1_000_000
"""Comparisons of items that the order of a list is worth; beyond it the list counts as exchanged."""


@dataclass(slots=True, frozen=True)
class CartridgeDiff:
    """``found``: ``{"at": [keys and indexes], "was": value, "is": value}``, without ``was`` for what came and without ``is`` for what went.

    An index is that of the later list, of what went that of the earlier. ``shape``: the one that both were
    compared in, where theirs are different.
    """

    found: list[Edit]
    shape: str = ""

    def lines(self) -> list[str]:
        """One line each, for people."""
        return list(dict.fromkeys(_line(one) for one in self.found))


def compare(before: Document, after: Document) -> CartridgeDiff:
    """The changes from one to the other.

    Lists are compared by their items, so one that came first or was dropped moves nothing; a frozen machine
    counts as one thing. Raises ``BadCartridgeError``.
    """
    shape = ""
    if is_lispy(before) and is_lispy(after):
        before, after = ({_ENV: {}, _ENV_WIRE: {}, **one} for one in (before, after))
    elif not is_lispy(before) and not is_lispy(after):
        wanted = checked(before)
        if checked(after) is not wanted:
            shape, after = wanted.value, _plain(convert(after, wanted), wanted)
            before = _plain(copy.deepcopy(before), wanted)
    found = _between([], before, after)
    changed = {tuple(one["at"][1:2]) for one in found if one["at"][:1] == [_ENV]}
    # What JSON can say of a value is said there; its exact form would only repeat it.
    return CartridgeDiff(
        [one for one in found if one["at"][:1] != [_ENV_WIRE] or tuple(one["at"][1:2]) not in changed], shape
    )


def _between(at: Path, before: Any, after: Any) -> list[Edit]:
    def whole(inner: Path, was: Any, _: Any) -> bool:
        return isinstance(was, list) or [*at, *inner] == _IMAGE

    found: list[Edit] = []
    for one in json_patch.between(before, after, whole=whole):
        place = [*at, *one["at"]]
        if isinstance(one.get("was"), list) and isinstance(one.get("is"), list):
            found += _lists(place, one["was"], one["is"])
        else:
            found.append({**one, "at": place})
    return found


def _lists(at: Path, before: list[Any], after: list[Any]) -> list[Edit]:
    """Item by item, each found again by what it is."""
    start = 0
    old, new = [canonical(one) for one in before], [canonical(one) for one in after]
    while start < min(len(old), len(new)) and old[start] == new[start]:
        start += 1
    end = 0
    while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
        end += 1
    old, new = old[start : len(old) - end], new[start : len(new) - end]
    if len(old) * len(new) > _WORTH:
        return [{"at": at, "was": before, "is": after}]
    found: list[Edit] = []
    for kind, i1, i2, j1, j2 in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            continue
        both = min(i2 - i1, j2 - j1)
        for step in range(both):
            was, now = before[start + i1 + step], after[start + j1 + step]
            found += _between([*at, start + j1 + step], was, now)
        found += [{"at": [*at, start + i], "was": before[start + i]} for i in range(i1 + both, i2)]
        found += [{"at": [*at, start + j], "is": after[start + j]} for j in range(j1 + both, j2)]
    return found


def _plain(document: Document, shape: Shape) -> Document:
    """Without what is carried along for another shape."""
    holder: Document = document["organism"] if shape is Shape.BUDDY else document
    holder.pop(CARRIED, None)
    return document


def _line(one: Edit) -> str:
    if CARRIED in one["at"]:
        return "What is carried along for another shape differs."
    if one["at"] != _IMAGE:
        return json_patch.lines([one])[0]
    return f"machine: {_frozen(one.get('was'))} → {_frozen(one.get('is'))}"


def _frozen(image: Any) -> str:
    steps = json_patch.get(image, ["usage", "steps"]) if isinstance(image, dict) else None
    return f"frozen after {steps:,} steps" if isinstance(steps, int) else "not under way"
