"""Machines that were heard of nearby. A sighting claims a fingerprint; only a connection proves it."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

AddressSource = Literal["nearby", "last address", "list", "typed"]
"""By which way an address became known, in the order in which they are tried."""

ADDRESS_SOURCES: tuple[AddressSource, ...] = ("nearby", "last address", "list", "typed")

Change = Literal["appeared", "changed", "heard", "gone"]
"""appeared: a new one; changed: other name, addresses or port; heard: announced again; gone: withdrawn."""

MOST = 2_000
"""Sightings kept."""
MOST_OF_ONE = 8
"""Sightings kept that claim one fingerprint."""

_log = logging.getLogger(__name__)


class DiscoveredNode(msgspec.Struct, frozen=True):
    """One announcement: ``addresses`` are IP addresses, the likeliest first; ``at`` is microseconds since 1970."""

    fingerprint: str
    name: str
    addresses: tuple[str, ...]
    port: int
    source: AddressSource
    at: int

    @property
    def short(self) -> str:
        """The four characters that screens show."""
        return self.fingerprint[:4]


Listener = Callable[[Change, DiscoveredNode], None]


class DiscoveredNodes:
    """The sightings of now, by their source: the name under which one was announced.

    Several may claim one fingerprint, so that nobody can hide a machine by announcing its fingerprint.
    Bounded: beyond ``most``, the longest silent ones of machines that are not pinned go.
    """

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        # The longest silent first. Not a dict: taking from a dict's front gets ever slower.
        self._by_source: OrderedDict[str, DiscoveredNode] = OrderedDict()
        self._sources: dict[str, dict[str, None]] = {}
        self._pinned: frozenset[str] = frozenset()
        self._listeners: list[Listener] = []

    def __len__(self) -> int:
        """Returns the number of different machines."""
        return len(self._sources)

    def listen(self, listener: Listener) -> Callable[[], None]:
        """Calls ``listener(change, sighting)`` at every change. Returns what ends that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def pin(self, fingerprints: Iterable[str]) -> None:
        """Keeps the addresses of these machines, the paired ones, when others need room."""
        self._pinned = frozenset(fingerprints)

    def saw(self, source: str, sighting: DiscoveredNode) -> None:
        """Takes an announcement in."""
        before = self._by_source.get(source)
        if before is not None:
            self._drop(source, before)
        self._by_source[source] = sighting
        self._sources.setdefault(sighting.fingerprint, {})[source] = None
        if before is None:
            self._make_room(sighting.fingerprint)
            if source in self._by_source:
                self._tell("appeared", sighting)
        elif before.fingerprint != sighting.fingerprint:
            self._tell("gone", before)
            self._tell("appeared", sighting)
        elif msgspec.structs.replace(before, at=sighting.at) != sighting:
            self._tell("changed", sighting)
        else:
            self._tell("heard", sighting)

    def heard(self, source: str, at: int) -> None:
        """Notes that the same was announced again. More often than once a second is not told."""
        before = self._by_source.get(source)
        if before is not None and at - before.at >= 1_000_000:
            self.saw(source, msgspec.structs.replace(before, at=at))

    def gone(self, source: str) -> None:
        """Takes a withdrawn announcement out."""
        before = self._by_source.get(source)
        if before is not None:
            self._drop(source, before)
            self._tell("gone", before)

    def of(self, fingerprint: str) -> list[DiscoveredNode]:
        """Returns the announcements that claim a fingerprint, the latest first."""
        found = [self._by_source[source] for source in self._sources.get(fingerprint, ())]
        return sorted(found, key=lambda sighting: -sighting.at)

    def machines(self) -> list[DiscoveredNode]:
        """One sighting for each fingerprint: the freshest, by name."""
        freshest = (self.of(fingerprint)[0] for fingerprint in self._sources)
        return sorted(freshest, key=lambda sighting: (sighting.name, sighting.fingerprint))

    def silent_since(self, at: int, most: int) -> list[str]:
        """Sources of up to ``most`` sightings that were last heard before ``at``."""
        found: list[str] = []
        for source, sighting in self._by_source.items():
            if sighting.at >= at or len(found) >= most:
                break
            found.append(source)
        return found

    def _drop(self, source: str, sighting: DiscoveredNode) -> None:
        del self._by_source[source]
        sources = self._sources[sighting.fingerprint]
        del sources[source]
        if not sources:
            del self._sources[sighting.fingerprint]

    def _make_room(self, fingerprint: str) -> None:
        claims = self._sources[fingerprint]
        if len(claims) > MOST_OF_ONE:
            self.gone(min(claims, key=lambda source: self._by_source[source].at))
        if len(self._by_source) > self._most:
            found = self._by_source.items()
            oldest = next((source for source, seen in found if seen.fingerprint not in self._pinned), "")
            self.gone(oldest)

    def _tell(self, change: Change, sighting: DiscoveredNode) -> None:
        for listener in tuple(self._listeners):
            try:
                listener(change, sighting)
            except Exception:  # noqa: BLE001 - one listener's fault is not the others'
                _log.exception("A listener to sightings failed")
