"""Measures how much of a machine is alive."""

from __future__ import annotations

from typing import Any

from agents.runtimes.lispy.errors import passed
from agents.runtimes.lispy.machine_state import State
from agents.runtimes.lispy.number_format import SMALL
from agents.runtimes.lispy.values import Closure, Combined, Macro, Pair, Scope, Symbol

FRAME_CELLS = 8


def check_memory(state: State) -> None:
    """Counts what is alive. Raises ``LispyError`` when it is too much, and charges for the counting.

    To be called once as many cells were made as may be alive, so that it is rare, and memory stays
    below twice the limit.
    """
    limit = state.limits.max_cells
    alive = _alive(state, limit)
    if alive > limit:
        raise passed("cells", limit, limit + 1)
    state.cells = 0
    state.work(alive)


def _alive(state: State, enough: int) -> int:
    """The cells that the machine can still reach; counting ends soon after ``enough``.

    A list, pair, map, procedure or scope counts once; a string or a long integer at each place that
    holds it.
    """
    total = FRAME_CELLS * len(state.stack)
    seen: set[int] = set()
    waiting: list[Any] = [state.globals, state.procedure, state.arguments, *(state.inputs or ())]
    for frame in state.stack:
        waiting += frame
    while waiting and total <= enough:
        value = waiting.pop()
        kind = type(value)
        if kind is str or kind is Symbol:
            total += len(value) >> 5
        elif kind is int:
            total += 0 if -SMALL < value < SMALL else value.bit_length() >> 8
        elif kind in _COMPOUND:
            if id(value) in seen:
                continue
            seen.add(id(value))
            if kind is list:
                total += 1 + len(value)
                waiting += value
            elif kind is Pair:
                total += 3
                waiting += (value.car, value.cdr)
            elif kind is dict:
                total += 1 + 2 * len(value)
                waiting += value
                waiting += value.values()
            elif kind is Combined:
                total += 2
                waiting.append(value.parts)
            elif kind is Scope:
                total += 2 + len(value.bindings)
                waiting += value.bindings.values()
                if value.parent is not None:
                    waiting.append(value.parent)
            else:
                total += 4
                waiting += (value.form, value.scope)
    return total


_COMPOUND = frozenset({list, Pair, dict, Combined, Scope, Closure, Macro})
