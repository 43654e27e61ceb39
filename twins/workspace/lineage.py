"""Descent of twins: ``parent_rappid`` chains as data for the terminal and the page."""

from __future__ import annotations

import json
from typing import TypedDict, cast

import msgspec
from msgspec.structs import asdict, replace

from twins.errors import BadFileError, BadRappidError
from twins.workspace.identity_file import read_regular
from twins.workspace.listing import Unreadable, scan
from twins.workspace.rappid import Rappid
from twins.workspace.twin import Twin
from twins.workspace.workspace import TwinLayout

_MAX_TOMBSTONE = 1 << 20


class RelativeRow(TypedDict):
    """A member of a family tree, see ``Relative``."""

    rappid: str
    name: str
    kind: str
    key: str
    state: str
    born_at: str
    parent: str
    depth: int
    looped: bool


class Relative(msgspec.Struct, frozen=True):
    """One member of a family.

    ``state`` is ``active``, ``archived``, ``purged``, or ``elsewhere`` for a parent that was never here.
    ``depth`` counts from the root of its tree; ``parent`` and ``rappid`` are texts. ``looped`` marks
    one whose own descendants claim to be its parents: its line ends there.
    """

    rappid: str
    name: str
    kind: str
    key: str
    state: str
    born_at: str
    parent: str
    depth: int = 0
    looped: bool = False

    def as_json(self) -> RelativeRow:
        """The object that ``--json`` and the page show."""
        return cast(RelativeRow, asdict(self))


class Families:
    """Every line of a home, read once: active, archived and purged ones, and parents that are elsewhere."""

    def __init__(self, places: TwinLayout) -> None:
        self._members: dict[str, Relative] = {}  # by identity
        self._alias: dict[str, str] = {}
        self.unreadable: list[Unreadable] = []
        for archived in (False, True):
            found = scan(places, archived=archived)
            self.unreadable += found.unreadable
            for twin in sorted(found.twins, key=lambda twin: twin.key != twin.rappid.key):
                self._add(twin.rappid.identity, _living(twin))
                older = twin.identity.migrated_from
                if older:
                    self._alias.setdefault(older.identity, twin.rappid.identity)
        for purged in _tombstones(places):
            self._add(_identity(purged.rappid), purged)
        for member in list(self._members.values()):
            if member.parent and self._of(member.parent) not in self._members:
                self._add(_identity(member.parent), _elsewhere(member.parent))
        self._children: dict[str, list[str]] = {}
        for identity, member in self._members.items():
            if member.parent:
                self._children.setdefault(self._of(member.parent), []).append(identity)
        for siblings in self._children.values():
            siblings.sort(key=lambda identity: _age(self._members[identity]))

    def ancestors(self, rappid: Rappid) -> list[Relative]:
        """The chain upward, parent first. Ends at a founder, at one who is elsewhere, or where it loops."""
        ancestry, looped = self._line(self._of(rappid.text))
        chain = [replace(self._members[one], depth=depth) for depth, one in enumerate(ancestry[1:], 1)]
        if looped and chain:
            chain[-1] = replace(chain[-1], looped=True)
        return chain

    def children(self, rappid: Rappid) -> list[Relative]:
        """The twins that name ``rappid`` as their parent, the oldest first."""
        return [replace(self._members[one], depth=1) for one in self._children.get(self._of(rappid.text), [])]

    def tree(self, rappid: Rappid | None = None) -> list[Relative]:
        """A family from its root down, each before its children; without ``rappid``, every family.

        Flat, so that no depth of descent is too deep. Everyone appears once.
        """
        rows: list[Relative] = []
        seen: set[str] = set()
        if rappid is not None:
            self._descend(self._top(self._of(rappid.text)), rows, seen)
            return rows
        founders = [identity for identity, member in self._members.items() if not member.parent]
        for identity in sorted(founders, key=lambda one: _age(self._members[one])):
            self._descend(identity, rows, seen)
        # The rest descend from one of their own descendants: the lineage begins in the loop.
        for identity in sorted(self._members.keys() - seen, key=lambda one: _age(self._members[one])):
            if identity not in seen:
                self._descend(self._top(identity), rows, seen)
        return rows

    def _line(self, identity: str) -> tuple[list[str], bool]:
        """One and its ancestors, upward, and whether the next would be one of them again."""
        ancestry = {identity: None}  # in order
        while (member := self._members.get(identity)) is not None and member.parent:
            identity = self._of(member.parent)
            if identity in ancestry:
                return list(ancestry), True
            ancestry[identity] = None
        return list(ancestry), False

    def _top(self, identity: str) -> str:
        return self._line(identity)[0][-1]

    def _descend(self, top: str, rows: list[Relative], seen: set[str]) -> None:
        waiting = [(top, 0)]
        while waiting:
            identity, depth = waiting.pop()
            if identity not in self._members or identity in seen:
                continue
            seen.add(identity)
            member = self._members[identity]
            looped = depth == 0 and bool(member.parent)
            rows.append(replace(member, depth=depth, looped=looped))
            waiting += [(child, depth + 1) for child in reversed(self._children.get(identity, []))]

    def _add(self, identity: str, member: Relative) -> None:
        """The first to claim an identity has it, and the children; another claimant stands for itself."""
        if self._members.setdefault(identity, member) is not member and member.state != "purged":
            self._members[f"{identity} {member.state} {member.key}"] = member

    def _of(self, text: str) -> str:
        identity = _identity(text)
        return identity if identity in self._members else self._alias.get(identity, identity)


def _identity(text: str) -> str:
    """The key of a rappid in ``parent_rappid``; text that is none stands for itself."""
    try:
        return Rappid.parse(text).identity
    except BadRappidError:
        return f"?{text}"


def _living(twin: Twin) -> Relative:
    return Relative(
        rappid=twin.rappid.text,
        name=twin.name,
        kind=twin.kind,
        key=twin.key,
        state="archived" if twin.archived else "active",
        born_at=twin.born_at,
        parent=twin.identity.parent_text,
    )


def _elsewhere(text: str) -> Relative:
    try:
        rappid = Rappid.parse(text)
        name, key = rappid.slug or rappid.tail[:8], rappid.key
    except BadRappidError:
        name, key = "".join(one for one in text if one.isprintable())[:60], ""
    return Relative(text, name, "", key, "elsewhere", "", "")


def _tombstones(places: TwinLayout) -> list[Relative]:
    if not places.purged.is_dir():
        return []
    found = []
    for path in sorted(places.purged.glob("*.json")):
        try:
            stone = json.loads(read_regular(path, _MAX_TOMBSTONE) or b"{}")
        except (BadFileError, ValueError, RecursionError):
            continue  # list_purged is where a damaged tombstone is told of; here it only has no name
        if isinstance(stone, dict) and isinstance(stone.get("rappid"), str):
            name, kind = str(stone.get("name", "")), str(stone.get("kind", ""))
            found.append(Relative(stone["rappid"], name, kind, path.stem, "purged", "", ""))
    return found


def _age(member: Relative) -> tuple[str, str, str]:
    return member.born_at, member.name.casefold(), member.rappid
