"""A detected egg: its file, what it declares of itself, and its parts on their way to their targets."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import repeat
from operator import itemgetter
from typing import Any, overload

from envelopes.codecs.strict_json import strict_object
from twins.eggs.parsed_egg import Part, Role
from twins.eggs.readers.workspace_paths import Place, disarmed
from twins.errors import BadEggError, HostileEggError
from twins.fs.untrusted_names import NameSet, safe_component, safe_path, shown
from twins.work_progress import Progress
from twins.zip.reader import Archive

MANIFEST_BYTES = 16 << 20
"""Most bytes of a manifest or any other JSON member that is read."""
UNPLACED = ".brainstem_data/unplaced"
"""The folder of a workspace for files of an egg that have no other place."""
_LINE = 120
_UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]+")

Row = tuple[str, Role, str, int]
"""As a part: its name in the egg, role, target and size."""


@dataclass(slots=True)
class DetectedEgg:
    """One egg. ``octets`` is its manifest as it stands there: a member of ``archive``, or the whole file.

    ``file`` is what a person calls it. ``check``: read every file now and compare what can be compared.
    """

    file: str
    size: int
    digest: str
    manifest: dict[str, Any]
    octets: bytes = field(repr=False)
    check: bool = True
    zip: Archive | None = None
    manifest_name: str = "manifest.json"
    notes: list[str] = field(default_factory=list)
    progress: Progress | None = field(default=None, repr=False)

    @property
    def archive(self) -> Archive:
        """The archive that it is. Only where a family is a ZIP."""
        assert self.zip is not None
        return self.zip

    @property
    def names(self) -> list[str]:
        """The egg's files, in the order of its list."""
        return self.archive.names

    def __contains__(self, name: str) -> bool:
        return name in self.archive

    def read(self, name: str) -> bytes:
        """A small member, whole."""
        return self.archive.read(name, limit=MANIFEST_BYTES)

    def read_object(self, name: str) -> dict[str, Any]:
        """A member that is a JSON object. Raises ``BadEggError``."""
        return parse_object(self.read(name), f"{self.file}, {shown(name)},")

    def need(self, name: str) -> None:
        """Raises ``BadEggError`` unless there is a file of that name."""
        if name not in self.archive:
            raise self.damaged(f"{shown(name)} is missing")

    def damaged(self, what: str) -> BadEggError:
        """The error for an egg that is not whole; ``what`` names the file or says in a clause."""
        return BadEggError(f"{self.file} is damaged ({what}); nothing was written.", do="Get it again.")

    def seed(self) -> bytes:
        """32 bytes that are the same for the same manifest and for nothing else."""
        return hashlib.sha256(self.octets).digest()


class Parts(Sequence[Part]):
    """An egg's parts as columns: tens of thousands are told apart and counted without an object for each.

    Reads like a tuple of parts; they are made when the first is asked for, and then kept.
    """

    def __init__(
        self, archive: Archive | None, names: list[str], places: list[Place], made: dict[int, Part]
    ) -> None:
        """``names`` are members of ``archive`` with their ``places``.

        ``made`` holds those that are no members, by their place in the row, where ``names`` and ``places``
        have them, too.
        """
        self._archive = archive
        self._names = names
        self._places = places
        self._made = made

    def rows(self) -> Iterator[Row]:
        """The fields of each part."""
        return zip(
            self._names,
            map(itemgetter(0), self._places),
            map(itemgetter(1), self._places),
            self._sizes(),
            strict=True,
        )

    def counted(self) -> dict[Role, int]:
        """The number of parts of each role that there is."""
        counts = Counter(map(id, map(itemgetter(0), self._places)))
        return {role: counts[id(role)] for role in Role if counts[id(role)]}

    def __len__(self) -> int:
        return len(self._names)

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts)

    @overload
    def __getitem__(self, place: int) -> Part: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[Part, ...]: ...
    def __getitem__(self, place: int | slice) -> Part | tuple[Part, ...]:
        return self._parts[place]

    @cached_property
    def _parts(self) -> tuple[Part, ...]:
        made = self._made
        if self._archive is None:
            return tuple(made.values())
        chunks: Iterator[Callable[[], Iterator[bytes]]] = map(
            partial, repeat(self._archive.chunks), self._names
        )
        found = map(Part, *zip(*self.rows(), strict=True), chunks) if self._names else iter(())
        return tuple(made.get(place, part) for place, part in enumerate(found))

    def _sizes(self) -> list[int]:
        made = self._made
        if self._archive is None or len(made) == len(self._names):
            return [part.size for part in made.values()]
        sizes = list(map(self._archive.sizes.get, self._names, repeat(0)))
        for place, part in made.items():
            sizes[place] = part.size
        return sizes


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


def part_of(name: str, role: Role, target: str, octets: bytes) -> Part:
    """A part whose content was made or taken out of JSON."""

    def chunks() -> Iterator[bytes]:
        if octets:
            yield octets

    return Part(name, role, target, len(octets), chunks)


def text(*places: tuple[Any, str], most: int = _LINE) -> str:
    """The first of these (object, key) that holds text, as one line fit to be shown; "" for none."""
    for holder, key in places:
        value = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(value, str):
            line = " ".join(_UNSHOWN.sub(" ", value).split())[:most]
            if line:
                return line
    return ""


def component(*places: tuple[Any, str]) -> str:
    """The first of these (object, key) that holds text, exactly as it stands there, fit to name one file or folder; "" for none.

    Raises ``HostileEggError`` for text that is not.
    """
    for holder, key in places:
        value = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(value, str) and value:
            return safe_component(value)
    return ""


def inside(holder: Any, key: str) -> dict[str, Any]:
    """The object under ``key``; an empty one where there is none."""
    value = holder.get(key) if isinstance(holder, dict) else None
    return value if isinstance(value, dict) else {}


def parse_object(octets: bytes, name: str, *, wide: bool = False) -> dict[str, Any]:
    """The one object that ``octets`` hold; ``name`` is what a person calls them. Raises ``BadEggError``."""
    try:
        return strict_object(octets, wide=wide)
    except ValueError as error:
        raise damaged(name, str(error)) from error


def damaged(name: str, why: str) -> BadEggError:
    """The error for JSON that cannot be taken; ``why`` is a clause."""
    return BadEggError(f"{name} is damaged ({why}); nothing was written.", do="Get it again.")
