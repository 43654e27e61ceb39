"""Gathering an egg's parts: each with its role and a target that was checked; nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter

from twins.eggs.parsed_egg import Part, Role
from twins.eggs.readers.detected import DetectedEgg, part_of
from twins.eggs.readers.member_paths import Place, disarmed
from twins.eggs.readers.parts import Parts
from twins.errors import HostileEggError
from twins.zip.names import NameSet, safe_path, shown

UNPLACED = ".brainstem_data/unplaced"
"""The folder of a workspace for files of an egg that have no other place."""


class PartCollector:
    """Parts on their way to their targets; no two get the same one, on any disk.

    Raises ``HostileEggError`` for a target that leads outside. Of an egg that is only looked at nothing is written,
    so that targets are merely distinguished: a plan or a hatching opens it anew.
    """

    def __init__(self, found: DetectedEgg, *, unplaced: str = UNPLACED) -> None:
        self._found = found
        self._unplaced = unplaced
        self._targets = NameSet()
        self._seen: set[str] | None = None if found.check else set()
        self._names: list[str] = []
        self._places: list[Place] = []
        self._made: dict[int, Part] = {}
        self._aside: list[str] = []

    def put(self, name: str, place: Place | None) -> None:
        """A member of the archive, to its place; without one, or where that is taken, it is set aside."""
        if place is None or not self._take(place[1]):
            place = self._set_aside(name)
        self._names.append(name)
        self._places.append(place)

    def put_every(self, names: list[str], place: Callable[[str], Place | None]) -> None:
        """Members, each to the place of its name, in their order."""
        places = list(map(place, names))
        found = list(filter(None, places))
        if self._seen is not None and len(found) == len(places):
            targets = set(map(itemgetter(1), found))
            if len(targets) == len(found) and self._seen.isdisjoint(targets):
                self._seen |= targets
                self._names += names
                self._places += found
                return
        for name, one in zip(names, places, strict=True):
            self.put(name, one)

    def made(self, part: Part) -> None:
        """A part that is no member. One whose place is taken is not needed."""
        if self._take(part.target):
            self._add(part)

    def text(self, name: str, place: Place | None, content: str) -> None:
        """A file that an egg in JSON holds as text. ``name`` is a path that was checked."""
        if place is None or not self._take(place[1]):
            place = self._set_aside(name)
        self._add(part_of(name, place[0], place[1], content.encode()))

    def holds(self, role: Role) -> bool:
        """True when there is a part of that role yet."""
        return any(place[0] is role for place in self._places)

    def parts(self) -> Parts:
        """All of them. What was set aside is noted in one sentence."""
        aside = self._aside
        if aside:
            more = f" and {len(aside) - 5} more" if len(aside) > 5 else ""
            shown_names = ", ".join(map(shown, aside[:5]))
            self._found.notes.append(
                f"{len(aside)} files have no place here and are kept in {self._unplaced}: {shown_names}{more}."
                if len(aside) > 1
                else f"{shown_names} has no place here and is kept in {self._unplaced}."
            )
        return Parts(self._found.zip, self._names, self._places, self._made)

    def _add(self, part: Part) -> None:
        self._made[len(self._names)] = part
        self._names.append(part.name)
        self._places.append((part.role, part.target))

    def _set_aside(self, name: str) -> Place:
        self._aside.append(name)
        target = safe_path(f"{self._unplaced}/{disarmed(name)}")
        self._targets.add(target)
        return Role.OTHER, target

    def _take(self, target: str) -> bool:
        if self._seen is not None:
            is_new = target not in self._seen
            self._seen.add(target)
            return is_new
        safe_path(target)
        try:
            self._targets.add(target)
        except HostileEggError:  # taken, which is no harm: it is set aside
            return False
        return True
