"""Every builtin and constant by name, and the globals that a program starts with."""

from __future__ import annotations

import math
from typing import Any

from agents.runtimes.lispy.builtins import (
    arithmetic,
    compare,
    higher_order,
    host,
    json_text,
    lists,
    maps,
    strings,
)
from agents.runtimes.lispy.machine_state import State
from agents.runtimes.lispy.values import Builtin, Scope, Symbol

CONSTANTS: dict[str, Any] = {
    "#t": True,
    "#f": False,
    "true": True,
    "false": False,
    "nil": None,
    "pi": math.pi,
    "e": math.e,
}


def _manifest(state: State, arguments: list[Any]) -> Any:
    """The names that every program starts with, in order."""
    return state.made(list(NAMES))


BUILTINS: dict[str, Builtin] = {
    name: Builtin(name, *entry)
    for room in (arithmetic, compare, higher_order, host, json_text, lists, maps, strings)
    for name, entry in room.BUILTINS.items()
}
BUILTINS["builtin-manifest"] = Builtin("builtin-manifest", _manifest, 0, 0)
NAMES = sorted(BUILTINS | CONSTANTS)

INPUT_BUILTINS = BUILTINS | {"next-input": Builtin("next-input", *host.NEXT_INPUT)}
"""The builtins of a machine that is handed inputs."""

_STARTING = {Symbol(name): value for name, value in (BUILTINS | CONSTANTS).items()}
_STARTING_WITH_INPUT = {Symbol(name): value for name, value in (INPUT_BUILTINS | CONSTANTS).items()}


def starting_globals(*, with_input: bool) -> Scope:
    """A new global scope: every builtin and constant."""
    return Scope(dict(_STARTING_WITH_INPUT if with_input else _STARTING), None)


def is_unchanged(name: Symbol, value: Any) -> bool:
    """True when a global still is what a program starts with."""
    found = INPUT_BUILTINS.get(name)
    if found is not None:
        return value is found
    return name in CONSTANTS and type(value) is type(CONSTANTS[name]) and value == CONSTANTS[name]
