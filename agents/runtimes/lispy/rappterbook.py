"""The forms that the profile ``rappterbook`` has beyond the language: when, unless, pipe, dotimes, do."""

from __future__ import annotations

from typing import Any

from agents.runtimes.lispy.errors import wrong
from agents.runtimes.lispy.frames import DOTIMES, PIPE, UNLESS, WHEN
from agents.runtimes.lispy.machine_state import State
from agents.runtimes.lispy.special_forms import Begin, Resume, binding_of, check, in_sequence, inner_scope
from agents.runtimes.lispy.values import Scope, Symbol

_QUOTE = Symbol("quote")


def _when(state: State, form: list[Any], scope: Scope) -> Any:
    check(form, len(form) >= 2)
    state.stack.append([WHEN if form[0] == "when" else UNLESS, form, scope])
    return state.evaluate(form[1], scope)


def _resume_when(state: State, frame: list[Any], value: Any) -> Any:
    state.stack.pop()
    is_true = value is not None and value is not False
    return in_sequence(state, frame[1], 2, frame[2]) if is_true is (frame[0] == WHEN) else None


def _do(state: State, form: list[Any], scope: Scope) -> None:
    return None


def _pipe(state: State, form: list[Any], scope: Scope) -> Any:
    check(form, len(form) >= 2)
    if len(form) > 2:
        state.stack.append([PIPE, form, 2, scope])
    return state.evaluate(form[1], scope)


def _resume_pipe(state: State, frame: list[Any], value: Any) -> Any:
    """``(f a)`` is given the value before ``a``; a procedure, or what makes one, is given it alone."""
    _, form, index, scope = frame
    if index + 1 >= len(form):
        state.stack.pop()
    else:
        frame[2] = index + 1
    stage, given = form[index], [_QUOTE, value]
    if type(stage) is list and stage and not (type(stage[0]) is Symbol and stage[0] == "lambda"):
        return state.evaluate(state.made([stage[0], state.made(given), *stage[1:]]), scope)
    return state.evaluate(state.made([stage, state.made(given)]), scope)


def _dotimes(state: State, form: list[Any], scope: Scope) -> Any:
    check(form, len(form) >= 3)
    state.stack.append([DOTIMES, form, scope, 0, -1])
    return state.evaluate(binding_of(form, form[1])[1], scope)


def _resume_dotimes(state: State, frame: list[Any], value: Any) -> Any:
    """``(dotimes (i n) body …)``: for i from 0 below n; nil."""
    _, form, scope, index, count = frame
    if count < 0:
        if type(value) is not int or value < 0:
            raise wrong("dotimes: the count must be a whole number")
        state.fits(value)
        count = frame[4] = value
    if index >= count:
        state.stack.pop()
        return None
    frame[3] = index + 1
    state.charge(1)
    return in_sequence(state, form, 2, inner_scope(state, {binding_of(form, form[1])[0]: index}, scope))


BEGINS: dict[str, Begin] = {
    "when": _when,
    "unless": _when,
    "dotimes": _dotimes,
    "pipe": _pipe,
    "do": _do,
}

RESUMES: dict[int, Resume] = {
    WHEN: _resume_when,
    UNLESS: _resume_when,
    PIPE: _resume_pipe,
    DOTIMES: _resume_dotimes,
}
