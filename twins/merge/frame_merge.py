"""Frames of one being, lived in parallel, made one history again.

Compared by hash: a frame that both have is shared, one that only one has is new, and a contradiction is one
that differs from another in the same place (stream and number) or at the same moment, where no side ever
had both. Of contradicting frames the one of the base is canon, else the earlier (UTC, then hash). The other
opens an alternate dimension, and what follows from it goes there too: every stream in the canon, and every
dimension, is one unbroken chain.

Nothing is ever dropped, it does not matter who is ours and who is theirs, and merging again changes nothing.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from twins.cartridges.json_documents import canonical, parse_timestamp, same
from twins.eggs.frames import Frame
from twins.errors import BadEggError

Ident = tuple[str, str]
"""Stream and hash: one frame, wherever it lies."""

_SAID = ("frame_n", "utc", "kind", "payload", "prev_hash")


@dataclass(slots=True, frozen=True)
class Dimension:
    """A run of frames that contradicts the canon, in its own order.

    ``after``: hash of the frame it forks from, None at a stream's beginning. ``instead_of``: hash of the
    canon's frame that its first one contradicts, None where only a piece is missing between the two.
    ``seen_in``: labels of the eggs that lived it.
    """

    frames: tuple[Frame, ...]
    after: str | None
    instead_of: str | None
    seen_in: tuple[str, ...]

    @property
    def first(self) -> str:
        """The dimension's name: the hash of its first frame."""
        return str(self.frames[0]["hash"])

    @property
    def stream_id(self) -> str:
        """The stream that it is another version of."""
        return str(self.frames[0]["stream_id"])


@dataclass(slots=True, frozen=True)
class Side:
    """One of the lives to be merged: its frames, and the dimensions that it already kept aside."""

    label: str
    frames: Sequence[Frame]
    aside: Sequence[Dimension] = ()


@dataclass(slots=True)
class Merged:
    """One history. ``frames`` by UTC, then hash, each stream in its order; ``aside`` by stream and name.

    ``shared``, ``new`` and ``contradicting`` count frames: what both sides had, what one of them had and
    is canon now, what lies aside.
    """

    frames: list[Frame]
    aside: list[Dimension]
    shared: int
    new: int
    contradicting: int


def merge(ours: Side, theirs: Side, base: Side | None = None) -> Merged:
    """Makes one of two. Raises ``BadEggError`` when one hash stands for two different frames."""
    sides = (ours, theirs) if base is None else (ours, theirs, base)
    known = _Known(sides)
    canon = _Canon(known, known.with_what_led_to(base.frames if base else ()))
    for ident in canon.in_order():
        canon.place(ident)
    here, there = known.canons[0], known.canons[1]
    kept = [ident for ident, dimension in canon.placed.items() if dimension is None]
    return Merged(
        frames=[known.frames[ident] for ident in _by_time(known.frames, kept)],
        aside=[_closed(one, known) for one in sorted(canon.dimensions, key=lambda one: one.idents[0])],
        shared=len(here & there),
        new=sum((ident in here) != (ident in there) for ident in kept),
        contradicting=len(canon.placed) - len(kept),
    )


@dataclass(slots=True)
class _Open:
    """A dimension while it is being found."""

    idents: list[Ident]
    after: str | None
    instead_of: str | None


class _Known:
    """Every frame of every side, each once, and who held it in its canon or told of it aside."""

    def __init__(self, sides: Sequence[Side]) -> None:
        self.frames: dict[Ident, Frame] = {}
        self.canons: list[set[Ident]] = [set() for _ in sides]
        self.labels: dict[Ident, set[str]] = defaultdict(set)
        self.statements: dict[Ident, str] = {}
        for canon, side in zip(self.canons, sides, strict=True):
            for frame in side.frames:
                ident = self._take(frame)
                canon.add(ident)
                self.labels[ident].add(side.label)
            for dimension in side.aside:
                for frame in dimension.frames:
                    self.labels[self._take(frame)].update(dimension.seen_in)
                first = _ident(dimension.frames[0])
                self.statements[first] = max(self.statements.get(first, ""), dimension.instead_of or "")

    def together(self, one: Ident, other: Ident) -> bool:
        """True when a side had both: then they do not contradict each other."""
        return any(one in canon and other in canon for canon in self.canons)

    def with_what_led_to(self, frames: Iterable[Frame]) -> set[Ident]:
        """``frames`` and, as far as it is known here, everything before them."""
        found: set[Ident] = set()
        for frame in frames:
            ident = _ident(frame)
            while ident in self.frames and ident not in found:
                found.add(ident)
                ident = (ident[0], self.frames[ident]["prev_hash"])
        return found

    def _take(self, frame: Frame) -> Ident:
        ident = _ident(frame)
        found = self.frames.get(ident)
        if found is None:
            self.frames[ident] = frame
        elif found is not frame and not same(found, frame):
            if any(not same(found.get(key), frame.get(key)) for key in _SAID):
                raise BadEggError(
                    f"Frame {frame['frame_n']} is not what its hash says; nothing was merged.",
                    do="Get that egg again.",
                )
            self.frames[ident] = _both(found, frame)
        return ident


@dataclass(slots=True)
class _Canon:
    """The canon while it is being found: greedily, in an order that does not know who is ours."""

    known: _Known
    base: set[Ident]
    placed: dict[Ident, _Open | None] = field(default_factory=dict)
    dimensions: list[_Open] = field(default_factory=list)
    heads: dict[str, Ident] = field(default_factory=dict)
    places: dict[tuple[str, int], Ident] = field(default_factory=dict)
    moments: dict[Any, list[Ident]] = field(default_factory=lambda: defaultdict(list))

    def in_order(self) -> Iterable[Ident]:
        """The base first, then the others; each stream by number, otherwise by UTC and hash."""
        others = [ident for ident in self.known.frames if ident not in self.base]
        for part in (self.base, others):
            yield from _interleaved(self.known.frames, part, self._rank)

    def place(self, ident: Ident) -> None:
        """Into the canon, into the dimension it follows from, or into one of its own."""
        frame = self.known.frames[ident]
        stream, number, previous = frame["stream_id"], frame["frame_n"], frame["prev_hash"] or None
        if previous is not None and (parent := self.placed.get((stream, previous))) is not None:
            self._continue(parent, ident, previous)
            return
        against = self._against(ident, frame, stream, number, previous)
        if against is None:
            self.placed[ident] = None
            self.heads[stream] = ident
            self.places[stream, number] = ident
            self.moments[_when(frame)].append(ident)
            return
        self._open(ident, previous, against[0])

    def _against(
        self, ident: Ident, frame: Frame, stream: str, number: int, previous: str | None
    ) -> tuple[str | None] | None:
        """None when the frame goes on with the canon; else what it contradicts there, if it does."""
        here = self.places.get((stream, number))
        rivals = [] if here is None else [here]
        rivals += [
            other for other in self.moments.get(_when(frame), ()) if not self.known.together(ident, other)
        ]
        if rivals:
            return (min(rivals, key=self._rank)[1],)
        head = self.heads.get(stream)
        if head is None or (number > self.known.frames[head]["frame_n"] and previous is None):
            return None
        if self.known.frames[head]["frame_n"] + 1 == number and head[1] == previous:
            return None
        return (None,)

    def _continue(self, dimension: _Open, ident: Ident, previous: str) -> None:
        if dimension.idents[-1][1] == previous:
            dimension.idents.append(ident)
            self.placed[ident] = dimension
            return
        position = next(index for index, (_, hash_) in enumerate(dimension.idents) if hash_ == previous)
        self._open(ident, previous, dimension.idents[position + 1][1])

    def _open(self, ident: Ident, after: str | None, instead_of: str | None) -> None:
        # What is on record stays: who held both of two frames is no longer to be seen once one lies aside.
        statement = self.known.statements.get(ident)
        opened = _Open([ident], after, instead_of if statement is None else statement or None)
        self.dimensions.append(opened)
        self.placed[ident] = opened

    def _rank(self, ident: Ident) -> Any:
        frame = self.known.frames[ident]
        return (ident not in self.base, _when(frame), ident[1], ident[0])


def _interleaved(frames: dict[Ident, Frame], idents: Iterable[Ident], rank: Any) -> Iterable[Ident]:
    """All of ``idents``: within a stream by number, otherwise the lowest rank first."""
    streams: dict[str, list[Ident]] = defaultdict(list)
    for ident in idents:
        streams[ident[0]].append(ident)
    queues = []
    for stream in streams.values():
        stream.sort(key=lambda ident: (frames[ident]["frame_n"], rank(ident)), reverse=True)
        first = stream.pop()
        queues.append((rank(first), first, stream))
    heapq.heapify(queues)
    while queues:
        _, ident, stream = queues[0]
        yield ident
        if stream:
            following = stream.pop()
            heapq.heapreplace(queues, (rank(following), following, stream))
        else:
            heapq.heappop(queues)


def _by_time(frames: dict[Ident, Frame], idents: Iterable[Ident]) -> Iterable[Ident]:
    return _interleaved(frames, idents, lambda ident: (_when(frames[ident]), ident[1], ident[0]))


def _closed(found: _Open, known: _Known) -> Dimension:
    labels = {label for ident in found.idents for label in known.labels[ident]}
    return Dimension(
        tuple(known.frames[ident] for ident in found.idents),
        found.after,
        found.instead_of,
        tuple(sorted(labels)),
    )


def _ident(frame: Frame) -> Ident:
    return (frame["stream_id"], frame["hash"])


def _when(frame: Frame) -> Any:
    """The moment of a frame, comparable; texts that name none come after all that do."""
    found = parse_timestamp(frame["utc"])
    return (1, 0.0, frame["utc"]) if found is None else (0, found.timestamp(), "")


def _both(one: Frame, other: Frame) -> Frame:
    """One frame out of two copies that say the same but carry different keys beside it."""
    found = dict(one)
    for key, value in other.items():
        if key not in found or canonical(found[key]) < canonical(value):
            found[key] = value
    return found
