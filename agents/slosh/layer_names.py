"""Names of the parts of a context: the published ones, and those of the RAPP v1 text."""

from __future__ import annotations

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
