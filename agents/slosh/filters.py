"""Selects and orders the layers that an agent wants."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

from agents.slosh.layer_names import FILTERED, Layer, published


def hidden_layers(
    chosen: Mapping[str, Any] | None, preferences: Mapping[str, Any] | None, tired_of: frozenset[str]
) -> frozenset[str]:
    """The categories to show as their defaults.

    ``chosen`` is ``{include}`` or ``{exclude}`` (include wins), ``preferences`` is ``{suppress}``.
    ``tired_of`` are categories that feedback suppressed; an include brings them back.
    """
    chosen = chosen if isinstance(chosen, Mapping) else {}
    preferences = preferences if isinstance(preferences, Mapping) else {}
    if chosen.get("include") is not None:
        hidden = frozenset(FILTERED).difference(_categories(chosen["include"]))
    else:
        hidden = tired_of.union(_categories(chosen.get("exclude")))
    return hidden.union(_categories(preferences.get("suppress")))


def priority(preferences: Mapping[str, Any] | None) -> str | None:
    """The hint that names what ``{prioritize}`` lists, or None."""
    first = preferences.get("prioritize") if isinstance(preferences, Mapping) else None
    names = list(texts(first))
    return f"Signal priority: {', '.join(names)}" if names else None


def default_of(name: str) -> Any:
    """The value of a hidden layer: the shape it has when nothing is known."""
    if name in ("memory_echoes", "breadcrumbs"):
        return []
    return Layer(deepcopy(_DEFAULTS.get(name, {})))


def texts(value: Any) -> Iterable[str]:
    """The strings of a list that somebody else wrote; one string counts as a list of it."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, (list, tuple, set, frozenset)):
        return [item for item in value if isinstance(item, str)]
    return ()


def _categories(value: Any) -> Iterable[str]:
    return [name for name in map(published, texts(value)) if name in FILTERED]


_DEFAULTS: dict[str, dict[str, Any]] = {
    "query_signals": {"specificity": "low", "hints": []},
    "behavioral": {"prefers_brief": False, "technical_level": "standard", "frequent_entities": []},
    "orientation": {"confidence": "low", "approach": "clarify", "hints": [], "response_style": "standard"},
}
