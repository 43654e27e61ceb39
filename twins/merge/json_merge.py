"""Two versions of one JSON document made one, with the version that both came from.

What only one side changed is taken. Where both did:

    objects   key by key; of two that say ``updated_at``, the later one decides what cannot be joined
    lists     a set: what either side added is in, what one side took out and the other left alone is out;
              objects with an ``id`` (or hash, rappid, number, key) are the same item
    integers  counters: ours + (theirs - base), unless ``updated_at`` decides
    the rest  ``updated_at``, else a fixed choice that does not know who is ours

What was changed on one side beats its deletion on the other. Both sides come to the same document.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from twins.cartridges.field_specs import is_number
from twins.cartridges.json_documents import Document, canonical, parse_timestamp, same
from twins.errors import BadRappidError, TwinConflictError
from twins.workspace.rappid import Rappid
from twins.workspace.rappid import same as same_being


class _Absent(Enum):
    """Stands for a side that has nothing at all."""

    NOTHING = "nothing"


NOTHING = _Absent.NOTHING
_IDS = ("id", "hash", "rappid", "number", "key")
_TIMES = ("updated_at", "created_at", "at", "ts", "utc", "saved_at")


@dataclass(slots=True)
class MergeResult:
    """The document, and what it could not say: for each contradiction its place, and the value not taken."""

    document: Document
    contradictions: list[tuple[list[str], Any]] = field(default_factory=list)


def merge(base: Document | None, ours: Document, theirs: Document) -> MergeResult:
    """The two as one; the given ones stay untouched. Raises ``TwinConflictError`` when they are not one being's.

    ``base`` is what both came from; without it, everything counts as added by both.
    """
    same_lineage([one.get("rappid") for one in (base or {}, ours, theirs)])
    joined = MergeResult({})
    joined.document = _both([], {} if base is None else base, ours, theirs, 0, joined)
    return joined


def same_lineage(rappids: list[Any]) -> None:
    """Raises ``TwinConflictError`` unless all these name one being. Absent ones (None) say nothing."""
    found = [one for one in rappids if one is not None]
    for one in found[1:]:
        if not _one_being(found[0], one):
            raise TwinConflictError(
                f"These are two different beings: {_short(found[0])} and {_short(one)}; nothing was merged.",
                do="Merge only what came from one twin.",
            )


def _both(at: list[str], base: Any, ours: Any, theirs: Any, later: int, joined: MergeResult) -> Any:
    """One value out of two that differ from each other. ``later``: 1 when ours decides, -1 theirs, 0 neither."""
    if same(ours, theirs) or same(theirs, base):
        return copy.deepcopy(ours)
    if same(ours, base):
        return copy.deepcopy(theirs)
    if ours is NOTHING or theirs is NOTHING:
        return copy.deepcopy(theirs if ours is NOTHING else ours)
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return _objects(at, base if isinstance(base, dict) else {}, ours, theirs, later, joined)
    if isinstance(ours, list) and isinstance(theirs, list):
        return _lists(at, base if isinstance(base, list) else [], ours, theirs, joined)
    if not later and type(ours) is type(theirs) is int and (type(base) is int or base is NOTHING):
        return ours + theirs - (0 if base is NOTHING else base)
    return _chosen(at, ours, theirs, later, joined)


def _objects(
    at: list[str], base: Document, ours: Document, theirs: Document, later: int, joined: MergeResult
) -> Document:
    later = _later(ours, theirs) or later
    merged: Document = {}
    for key in [*ours, *sorted(theirs.keys() - ours.keys())]:
        was, here, there = (side.get(key, NOTHING) for side in (base, ours, theirs))
        value = _both([*at, key], was, here, there, later, joined)
        if value is not NOTHING:
            merged[key] = value
    return merged


def _lists(
    at: list[str], base: list[Any], ours: list[Any], theirs: list[Any], joined: MergeResult
) -> list[Any]:
    """Items of the base in its order, then what was added by time, then by its text."""
    before, here, there = _keyed(base), _keyed(ours), _keyed(theirs)
    kept = []
    for key, was in before.items():
        value = _both([*at, key], was, here.get(key, NOTHING), there.get(key, NOTHING), 0, joined)
        if value is not NOTHING:
            kept.append(value)
    added = [
        _both([*at, key], NOTHING, here.get(key, NOTHING), there.get(key, NOTHING), 0, joined)
        for key in sorted((here.keys() | there.keys()) - before.keys())
    ]
    return kept + sorted(added, key=_by_time)


def _chosen(at: list[str], ours: Any, theirs: Any, later: int, joined: MergeResult) -> Any:
    if at and at[-1] == "updated_at" and later:
        return ours if later > 0 else theirs
    ours_wins = later > 0 if later else canonical(ours) > canonical(theirs)
    won, lost = (ours, theirs) if ours_wins else (theirs, ours)
    joined.contradictions.append((at, copy.deepcopy(lost)))
    return copy.deepcopy(won)


def _later(ours: Document, theirs: Document) -> int:
    """1 when ours was updated later, -1 when theirs was, 0 when they do not say, or say the same."""
    here, there = ours.get("updated_at"), theirs.get("updated_at")
    first: Any = parse_timestamp(here)
    second: Any = parse_timestamp(there)
    if first is None or second is None or first == second:
        first, second = here, there
        if not (is_number(here) and is_number(there)) and not (
            isinstance(here, str) and isinstance(there, str)
        ):
            return 0
    return int(first > second) - int(first < second)


def _keyed(items: list[Any]) -> dict[str, Any]:
    """Items by what makes each of them itself; a repeated one stays once."""
    found: dict[str, Any] = {}
    for item in items:
        found.setdefault(_key(item), item)
    return found


def _key(item: Any) -> str:
    if isinstance(item, dict):
        for name in _IDS:
            if isinstance(item.get(name), (str, int)):
                return f"{name}={canonical(item[name]).decode()}"
    return canonical(item).decode()


def _by_time(item: Any) -> tuple[str, bytes]:
    times = (
        [item[name] for name in _TIMES if isinstance(item.get(name), str)] if isinstance(item, dict) else []
    )
    return (times[0] if times else "", canonical(item))


def _one_being(one: Any, other: Any) -> bool:
    if same(one, other):
        return True
    try:
        return same_being(Rappid.parse(one), Rappid.parse(other))
    except BadRappidError:
        return False


def _short(rappid: Any) -> str:
    text = rappid if isinstance(rappid, str) else canonical(rappid).decode()
    return text if len(text) <= 60 else f"{text[:40]}…{text[-8:]}"
