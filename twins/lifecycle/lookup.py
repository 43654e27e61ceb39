"""The one twin that a verb means; where it is in another state, the refusal says in which."""

from __future__ import annotations

import re

from twins.errors import NoSuchTwinError, TwinConflictError
from twins.lifecycle import state_index
from twins.workspace.listing import MIN_PREFIX, find
from twins.workspace.rappid import label
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout

_DIGITS = 8
_BEGINS = re.compile(r"[0-9a-f]{8}")


def find_active(places: TwinLayout, selector: str, *, when_archived: str = "") -> Twin:
    """The active twin that is meant.

    Raises ``NoSuchTwinError``; ``TwinConflictError`` when it is in another state, with ``when_archived`` after "is
    archived" where it is that.
    """
    try:
        return find(places, selector)
    except NoSuchTwinError:
        other = _found(places, selector, archived=True)
        if other is not None:
            raise TwinConflictError(
                f"{other.name} is archived{when_archived}.", do=f"rappd twins unarchive {other.key[:12]}"
            ) from None
        _refuse_purged(places, selector)
        return find(places, selector)  # it may have come back since we looked among the active


def address_of(name: str, key: str) -> str:
    """The name in a twin's id on the wire: ``rose-51256d6c``."""
    return f"{label(name)}-{key[:_DIGITS]}"


def find_addressed(places: TwinLayout, name: str) -> Twin:
    """The active twin of that name, key, or address. Raises as ``find_active`` does."""
    try:
        return find_active(places, name)
    except NoSuchTwinError:
        digits = name.rpartition("-")[2]
        if _BEGINS.fullmatch(digits) is None:
            raise
        found = find_active(places, digits)
        if address_of(found.name, found.key) != name:
            raise
        return found


def find_archived(places: TwinLayout, selector: str, *, when_active: str) -> str:
    """The key of the archived twin that is meant; its ``rappid.json`` may be damaged.

    Raises ``NoSuchTwinError``; ``TwinConflictError`` when it is in another state, with ``when_active`` after "is
    active" where it is that.
    """
    try:
        return find(places, selector, archived=True).key
    except NoSuchTwinError:
        wanted = selector.strip()
        for entry in state_index.list_archived(places):
            if wanted in (entry["hash"], entry["rappid"]):
                return str(entry["hash"])
        other = _found(places, selector, archived=False)
        if other is not None:
            raise TwinConflictError(
                f"{other.name} is active{when_active}.", do=f"rappd twins archive {other.key[:12]}"
            ) from None
        _refuse_purged(places, selector)
        raise


def _found(places: TwinLayout, selector: str, *, archived: bool) -> Twin | None:
    try:
        return find(places, selector, archived=archived)
    except NoSuchTwinError:
        return None


def _refuse_purged(places: TwinLayout, selector: str) -> None:
    wanted = selector.strip()
    for entry in state_index.list_purged(places):
        key = str(entry["hash"])
        if wanted in (key, entry.get("rappid"), entry.get("name")) or (
            len(wanted) >= MIN_PREFIX and key.startswith(wanted.lower())
        ):
            raise TwinConflictError(
                f"{entry.get('name') or key[:16]} is purged.",
                do="An egg of it hatches in another home: RAPP_HOME=… rappd egg hatch FILE",
            ) from None
