"""A peer's HELLO, read once where it comes in: whatever shows peers gets what is here, never the peer's own JSON."""

from __future__ import annotations

from typing import Any

import msgspec

MOST_ROWS = 1000
"""Of one list. The page and the terminal stay readable, and so does the memory of who knows many peers."""
LONGEST = 200


class PeerGreeting(msgspec.Struct, frozen=True):
    """The parts of a HELLO that are shown or used. What has not its documented shape is not among them.

    ``agents`` are rows ``{name, description, parameters}``; ``unread`` names the keys of which something was
    left out.
    """

    name: str = ""
    capabilities: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()
    agents: tuple[dict[str, Any], ...] = ()
    twins: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def read_greeting(data: dict[str, Any]) -> PeerGreeting:
    """The data of a HELLO, whatever it holds."""
    unread: list[str] = []

    def texts(key: str) -> tuple[str, ...]:
        return tuple(one for one in _rows(data, key, unread, _is_text))

    name = data.get("name", "")
    return PeerGreeting(
        name=name if isinstance(name, str) else "",
        capabilities=texts("capabilities"),
        verbs=texts("verbs"),
        agents=tuple(map(_agent, _rows(data, "agents", unread, _is_agent))),
        twins=texts("twins"),
        unread=tuple(unread),
    )


def _rows(data: dict[str, Any], key: str, unread: list[str], fits: Any) -> list[Any]:
    values = data.get(key, [])
    rows = values[:MOST_ROWS] if isinstance(values, list) else []
    found = [row for row in rows if fits(row)]
    if not isinstance(values, list) or len(found) < len(values):
        unread.append(key)
    return found


def _is_text(row: object) -> bool:
    return isinstance(row, str) and 0 < len(row) <= LONGEST


def _is_agent(row: object) -> bool:
    return isinstance(row, dict) and _is_text(row.get("name")) and isinstance(row.get("parameters", {}), dict)


def _agent(row: dict[str, Any]) -> dict[str, Any]:
    description = row.get("description")
    return {
        "name": row["name"],
        "description": description if isinstance(description, str) else "",
        "parameters": row.get("parameters", {}),
    }
