"""Layers of a context and the names of their parts: the published ones, and those of the RAPP v1 text."""

from __future__ import annotations

from typing import Any

LAYER_NAMES = (
    "timestamp",
    "temporal",
    "query_signals",
    "memory_echoes",
    "behavioral",
    "priors",
    "orientation",
    "breadcrumbs",
)
"""The keys of every context; ``upstream_slush`` joins them when another agent handed some on."""

FILTERED = ("temporal", "query_signals", "memory_echoes", "behavioral", "priors")
"""The categories that filters, preferences and feedback may hide."""

ALIASES = {"memory": "memory_echoes", "query": "query_signals", "slush": "upstream_slush"}
"""RAPP v1 §6 name: published name."""


def published(name: str) -> str:
    """The published name of a layer, whichever of the two is given."""
    return ALIASES.get(name, name)


class Layer(dict[str, Any]):
    """A dict whose keys also read as attributes: ``layer["fiscal"]`` is ``layer.fiscal``."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this layer has no {name!r}") from None
