"""Agents that peers advertise, validated and cleaned: their names and descriptions are untrusted text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec
import orjson

from agents.contract.agent import REACHING
from agents.contract.agent_contract import LONGEST_NAME, ContractError, check_metadata
from envelopes.codecs.strict_json import too_deep

MOST_AGENTS = 50
"""Of one peer."""
MOST_LOOKED_AT = 500
LONGEST_DESCRIPTION = 400
MOST_PARAMETERS = 8_192
"""Bytes of one agent's parameters."""

_NAME = re.compile(rf"[A-Za-z0-9_-]{{1,{LONGEST_NAME}}}")
_STEERING = r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]+"
_PROSE = frozenset({"description", "title"})
_MOST_NAMES = 100
"""In a list: a peer may have as many capabilities as a greeting holds."""


class RemoteAgent(msgspec.Struct, frozen=True):
    """One agent of a peer: its name there, and a schema that models accept."""

    name: str
    description: str
    parameters: dict[str, Any]


def offered_agents(announced: Sequence[dict[str, Any]]) -> list[RemoteAgent]:
    """The agents of a greeting that can be tools; whatever is odd about one leaves that one out."""
    found: dict[str, RemoteAgent] = {}
    for row in announced[:MOST_LOOKED_AT]:
        agent = _proper(row)
        if agent is not None:
            found.setdefault(agent.name, agent)
        if len(found) == MOST_AGENTS:
            break
    return list(found.values())


def names_told(capabilities: Sequence[str]) -> list[str]:
    """The names of agents in a greeting's capabilities, for a list."""
    return [name for name in capabilities[:_MOST_NAMES] if _NAME.fullmatch(name)]


def tame(text: str, most: int) -> str:
    """A stranger's text without what steers screens, and not too long."""
    return re.sub(_STEERING, " ", text[: 2 * most]).strip()[:most]


def _proper(row: dict[str, Any]) -> RemoteAgent | None:
    name, description, parameters = (row[key] for key in ("name", "description", "parameters"))
    if not _NAME.fullmatch(name) or name in REACHING or too_deep(parameters):
        return None  # who wants a machine of a peer's asks that peer in words
    try:
        if len(orjson.dumps(parameters)) > MOST_PARAMETERS:
            return None
        proper = check_metadata(name, {"parameters": _tamed(parameters)})
    except (ContractError, _ControlCharactersError, TypeError):
        return None
    return RemoteAgent(name, tame(description, LONGEST_DESCRIPTION), proper)


class _ControlCharactersError(Exception):
    """A name or a value holds what steers screens, and cannot be changed without changing its meaning."""


def _tamed(schema: Any) -> Any:
    """A schema whose prose is tame. Raises ``_ControlCharactersError``."""
    if isinstance(schema, dict):
        return {
            _checked(key): tame(value, LONGEST_DESCRIPTION)
            if key in _PROSE and isinstance(value, str)
            else _tamed(value)
            for key, value in schema.items()
        }
    if isinstance(schema, list):
        return [_tamed(value) for value in schema]
    return _checked(schema) if isinstance(schema, str) else schema


def _checked(text: str) -> str:
    if re.search(_STEERING, text):
        raise _ControlCharactersError
    return text
