"""The part of structural agents that only looks: what their operator may ask them away from the computer, too."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

LOOKING: Final[Mapping[str, tuple[str, ...]]] = {
    "Fleet": ("status", "neighborhoods"),
    "NeighborhoodSnapshot": ("list_eggs", "schedule"),
    "Twin": ("list", "overview", "lineage", "eggs", "checkpoints", "list_archived", "list_purged"),
}
"""Actions by agent."""
_BY_DEFAULT: Final = frozenset({"Fleet", "Twin"})
"""Agents that only look where a call names no action."""
OPERATIONS: Final = frozenset(
    {
        "eggs.receipts", "fleet.status", "neighborhood.places", "neighborhood.schedule", "neighborhood.snapshots",
        "twins.archived", "twins.checkpoints", "twins.lineage", "twins.list", "twins.purged", "twins.show",
    }
)  # fmt: skip
"""The daemon's operations that those actions need."""
_PARAMETERS = ("action", "rappid_uuid", "name")


def only_looks(name: str, arguments: Mapping[str, Any]) -> bool:
    """True when a call of the agent called ``name`` changes nothing."""
    if "action" not in arguments:
        return name in _BY_DEFAULT
    return arguments["action"] in LOOKING.get(name, ())


def looking_tool(name: str, description: str, parameters: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Description and parameters of the agent called ``name``: the actions that only look, without what others need."""
    known = parameters.get("properties") or {}
    kept = {key: known[key] for key in _PARAMETERS if key in known}
    kept["action"] = {**kept.get("action", {"type": "string"}), "enum": list(LOOKING[name])}
    required = [key for key in parameters.get("required") or () if key in kept]
    narrowed = f"{description} Here it only looks; changes are made on the computer."
    return narrowed, {**parameters, "properties": kept, "required": required}
