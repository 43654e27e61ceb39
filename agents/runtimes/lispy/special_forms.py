"""The special forms: how each begins, and how it goes on when a value it waits for is there.

``BEGINS[name](state, form, scope)`` and ``RESUMES[kind](state, frame, value)`` return the form's value,
or what ``state.evaluate`` returns. A resumed frame is the newest on the stack, and takes itself off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from agents.runtimes.lispy.errors import LispyError, malformed, wrong
from agents.runtimes.lispy.frames import (
    AND,
    COND,
    DEFINE,
    IF,
    LET,
    LET_STAR,
    OR,
    SEQUENCE,
    SET,
)
from agents.runtimes.lispy.machine_state import LANGUAGE, State
from agents.runtimes.lispy.values import Closure, Macro, Scope, Symbol


def in_sequence(state: State, form: list[Any], start: int, scope: Scope) -> Any:
    """Evaluates the forms from ``form[start]``; the last one's value, or nil, is theirs."""
    if start >= len(form):
        return None
    if start + 1 < len(form):
        state.stack.append([SEQUENCE, form, start + 1, scope])
    return state.evaluate(form[start], scope)


def _quote(state: State, form: list[Any], scope: Scope) -> Any:
    check(form, len(form) == 2)
    return form[1]


def _if(state: State, form: list[Any], scope: Scope) -> Any:
    check(form, 3 <= len(form) <= 4)
    state.stack.append([IF, form, scope])
    return state.evaluate(form[1], scope)


def _resume_if(state: State, frame: list[Any], value: Any) -> Any:
    state.stack.pop()
    _, form, scope = frame
    if value is not None and value is not False:
        return state.evaluate(form[2], scope)
    return state.evaluate(form[3], scope) if len(form) > 3 else None


def _cond(state: State, form: list[Any], scope: Scope) -> Any:
    return _try_clause(state, form, 1, scope)


def _try_clause(state: State, form: list[Any], index: int, scope: Scope) -> Any:
    if index >= len(form):
        return None
    clause = form[index]
    check(form, type(clause) is list and len(clause) > 0)
    test = clause[0]
    if type(test) is Symbol and test == "else":
        check(form, index == len(form) - 1)
        return in_sequence(state, clause, 1, scope)
    state.stack.append([COND, form, index, scope])
    return state.evaluate(test, scope)


def _resume_cond(state: State, frame: list[Any], value: Any) -> Any:
    state.stack.pop()
    _, form, index, scope = frame
    if value is None or value is False:
        return _try_clause(state, form, index + 1, scope)
    clause = form[index]
    check(form, type(clause) is list and len(clause) > 0)
    return in_sequence(state, clause, 1, scope) if len(clause) > 1 else value


def _define(state: State, form: list[Any], scope: Scope) -> Any:
    check(form, len(form) >= 3)
    target = form[1]
    if type(target) is Symbol:
        check(form, len(form) == 3)
        state.stack.append([DEFINE, form, scope])
        return state.evaluate(form[2], scope)
    closure = _procedure(state, Closure, form, scope)
    _bind(state, scope, target[0], closure)
    return closure


def _resume_define(state: State, frame: list[Any], value: Any) -> Any:
    state.stack.pop()
    _, form, scope = frame
    _bind(state, scope, _name(form, form[1]), value)
    return value


def _set(state: State, form: list[Any], scope: Scope) -> Any:
    check(form, len(form) == 3)
    _name(form, form[1])
    state.stack.append([SET, form, scope])
    return state.evaluate(form[2], scope)


def _resume_set(state: State, frame: list[Any], value: Any) -> Any:
    state.stack.pop()
    name = _name(frame[1], frame[1][1])
    scope: Scope | None = frame[2]
    while scope is not None:
        if name in scope.bindings:
            scope.bindings[name] = value
            return value
        scope = scope.parent
    raise wrong(f"unbound variable: {name}")


def _lambda(state: State, form: list[Any], scope: Scope) -> Any:
    check(form, len(form) >= 2)
    state.cells += 4
    return Closure(form, scope)


def _define_macro(state: State, form: list[Any], scope: Scope) -> Any:
    check(form, len(form) >= 3)
    target, made = form[1], form
    if type(target) is Symbol:
        made = form[2]
        check(form, len(form) == 3 and type(made) is list and len(made) >= 2 and made[0] == "lambda")
        check(form, type(made[0]) is Symbol)
        state.cells += 4
        _bind(state, scope, target, Macro(made, scope))
    else:
        _bind(state, scope, target[0], _procedure(state, Macro, form, scope))
    return None


def _let(state: State, form: list[Any], scope: Scope) -> Any:
    bindings = bindings_of(form)
    if not bindings:
        return in_sequence(state, form, 2, inner_scope(state, {}, scope))
    state.stack.append([LET, form, scope, []])
    return state.evaluate(binding_of(form, bindings[0])[1], scope)


def _resume_let(state: State, frame: list[Any], value: Any) -> Any:
    _, form, scope, done = frame
    bindings = bindings_of(form)
    done.append(value)
    if len(done) < len(bindings):
        return state.evaluate(binding_of(form, bindings[len(done)])[1], scope)
    state.stack.pop()
    names = [binding_of(form, binding)[0] for binding in bindings]
    return in_sequence(state, form, 2, inner_scope(state, dict(zip(names, done, strict=True)), scope))


def _let_star(state: State, form: list[Any], scope: Scope) -> Any:
    bindings = bindings_of(form)
    if not bindings:
        return in_sequence(state, form, 2, inner_scope(state, {}, scope))
    state.stack.append([LET_STAR, form, 0, scope])
    return state.evaluate(binding_of(form, bindings[0])[1], scope)


def _resume_let_star(state: State, frame: list[Any], value: Any) -> Any:
    _, form, index, scope = frame
    bindings = bindings_of(form)
    check(form, index < len(bindings))
    scope = frame[3] = inner_scope(state, {binding_of(form, bindings[index])[0]: value}, scope)
    index = frame[2] = index + 1
    if index < len(bindings):
        return state.evaluate(binding_of(form, bindings[index])[1], scope)
    state.stack.pop()
    return in_sequence(state, form, 2, scope)


def _begin(state: State, form: list[Any], scope: Scope) -> Any:
    return in_sequence(state, form, 1, scope)


def _resume_sequence(state: State, frame: list[Any], value: Any) -> Any:
    _, form, index, scope = frame
    if index + 1 >= len(form):
        state.stack.pop()
    else:
        frame[2] = index + 1
    return state.evaluate(form[index], scope)


def _and(state: State, form: list[Any], scope: Scope) -> Any:
    return _next_of(state, AND, form, 1, scope) if len(form) > 1 else True


def _or(state: State, form: list[Any], scope: Scope) -> Any:
    return _next_of(state, OR, form, 1, scope) if len(form) > 1 else False


def _next_of(state: State, kind: int, form: list[Any], index: int, scope: Scope) -> Any:
    if index + 1 < len(form):
        state.stack.append([kind, form, index + 1, scope])
    return state.evaluate(form[index], scope)


def _resume_and(state: State, frame: list[Any], value: Any) -> Any:
    state.stack.pop()
    if value is None or value is False:
        return value
    return _next_of(state, AND, frame[1], frame[2], frame[3])


def _resume_or(state: State, frame: list[Any], value: Any) -> Any:
    state.stack.pop()
    if value is not None and value is not False:
        return value
    return _next_of(state, OR, frame[1], frame[2], frame[3])


def _unsupported(state: State, form: list[Any], scope: Scope) -> NoReturn:
    raise LispyError("unsupported", f"{form[0]} is not supported by {LANGUAGE}")


def check(form: list[Any], is_well_formed: bool) -> None:
    """Ends the program if the form is not written as it must be."""
    if not is_well_formed:
        raise malformed(f"{form[0]}: malformed")


def _name(form: list[Any], name: Any) -> Symbol:
    check(form, type(name) is Symbol)
    found: Symbol = name
    return found


def bindings_of(form: list[Any]) -> list[Any]:
    """The bindings of a ``let``."""
    check(form, len(form) >= 2 and type(form[1]) is list)
    found: list[Any] = form[1]
    return found


def binding_of(form: list[Any], binding: Any) -> list[Any]:
    """A name and a form, of all there is in ``form``."""
    check(form, type(binding) is list and len(binding) == 2 and type(binding[0]) is Symbol)
    found: list[Any] = binding
    return found


def _bind(state: State, scope: Scope, name: Symbol, value: Any) -> None:
    state.cells += 1
    scope.bindings[name] = value


def inner_scope(state: State, bindings: dict[Symbol, Any], scope: Scope) -> Scope:
    """A new scope within ``scope``."""
    state.cells += 2 + len(bindings)
    return Scope(bindings, scope)


def _procedure(state: State, kind: type[Closure], form: list[Any], scope: Scope) -> Closure:
    target = form[1]
    check(form, type(target) is list and len(target) > 0 and type(target[0]) is Symbol)
    state.cells += 4
    return kind(form, scope)


Begin = Callable[[State, list[Any], Scope], Any]
Resume = Callable[[State, list[Any], Any], Any]

BEGINS: dict[str, Begin] = {
    "quote": _quote,
    "if": _if,
    "cond": _cond,
    "define": _define,
    "set!": _set,
    "lambda": _lambda,
    "let": _let,
    "let*": _let_star,
    "begin": _begin,
    "and": _and,
    "or": _or,
    "define-macro": _define_macro,
    "do": _unsupported,
    "quasiquote": _unsupported,
    "unquote": _unsupported,
    "unquote-splicing": _unsupported,
}

RESUMES: dict[int, Resume] = {
    SEQUENCE: _resume_sequence,
    IF: _resume_if,
    COND: _resume_cond,
    DEFINE: _resume_define,
    SET: _resume_set,
    LET: _resume_let,
    LET_STAR: _resume_let_star,
    AND: _resume_and,
    OR: _resume_or,
}
