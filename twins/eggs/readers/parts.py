"""An egg's parts as columns: tens of thousands are told apart and counted without an object for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from itertools import repeat
from operator import itemgetter
from typing import TYPE_CHECKING, overload

from twins.eggs.parsed_egg import Part, Role

if TYPE_CHECKING:
    from twins.zip.reader import Archive

Place = tuple[Role, str]
"""(what it is for, path below the destination)"""
Row = tuple[str, Role, str, int]
"""As a part: its name in the egg, role, target and size."""


class Parts(Sequence[Part]):
    """Reads like a tuple of parts; they are made when the first is asked for, and then kept."""

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
