"""All layers of one invocation, each computed at most once and only when asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from agents.slosh.derived_layers import (
    behavioral,
    memory_echoes,
    orientation,
    priors,
    query_signals,
    remembered,
    temporal,
)
from agents.slosh.layer_names import Layer

MemoryReader = Callable[[str | None], Mapping[str, Any]]
"""Gives the memories of a user (None: the workspace's owner); must not raise."""


class Layers:
    """The layers of a query, a moment and a memory, before filters and privacy.

    ``when`` is in seconds since the epoch. The memory is read at most once, when one of the layers
    that need it is, and not kept.
    """

    __slots__ = ("_done", "_guid", "_memory", "query", "when")

    def __init__(self, query: str, when: float, memory: MemoryReader | None, guid: str | None) -> None:
        self.query = query
        self.when = when
        self._memory = memory
        self._guid = guid
        self._done: dict[str, Any] | None = None

    def read(self, name: str) -> Any:
        """The layer ``name``: timestamp, temporal, query_signals, … Raises ``KeyError`` for another."""
        done = self._done
        if done is None:
            done = self._done = {}
        if name not in done:
            if name in _FROM_MEMORY:
                done.update(self._from_memory())
            else:
                done[name] = _COMPUTED[name](self)
        return done[name]

    def _from_memory(self) -> dict[str, Any]:
        memories = remembered(self._memory(self._guid) if self._memory is not None else {})
        return {
            "memory_echoes": memory_echoes(self.query, memories),
            "behavioral": behavioral(memories),
            "priors": priors(self.query, memories),
        }


def _moment(layers: Layers) -> datetime:
    return datetime.fromtimestamp(layers.when)


def _orientation(layers: Layers) -> Layer:
    return orientation(
        layers.read("temporal"),
        layers.read("query_signals"),
        layers.read("behavioral"),
        layers.read("priors"),
    )


_FROM_MEMORY = frozenset({"memory_echoes", "behavioral", "priors"})
_COMPUTED: dict[str, Callable[[Layers], Any]] = {
    "timestamp": lambda layers: _moment(layers).isoformat(),
    "temporal": lambda layers: temporal(_moment(layers)),
    "query_signals": lambda layers: query_signals(layers.query),
    "orientation": _orientation,
}
