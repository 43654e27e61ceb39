"""The machine's loop: evaluation and application, on a stack of its own.

It never calls itself, so a program's depth costs no recursion, and it can stop before any step with
everything it knows in its ``State``. One step is the evaluation of one form, or one application.
"""

from __future__ import annotations

from typing import Any

from agents.runtimes.lispy.builtins.host import NoInputError
from agents.runtimes.lispy.errors import LispyError, passed, wrong
from agents.runtimes.lispy.frames import BODY, CALL, COMPLEMENT, COMPOSE, EXPAND
from agents.runtimes.lispy.machine_state import APPLICATION_NEXT, APPLY, EVALUATE, FORM_NEXT, State
from agents.runtimes.lispy.memory import FRAME_CELLS, check_memory
from agents.runtimes.lispy.printer import shortly
from agents.runtimes.lispy.profiles import BEGINS, RESUMES
from agents.runtimes.lispy.values import Builtin, Closure, Combined, Macro, Scope, Symbol

_GIVE = "give"  # next: `value` to the newest frame; never at rest in this


def advance(state: State, pause: int | None = None) -> bool:
    """Goes on until the program is done or failed, or a step after the one numbered ``pause`` would begin.

    A builtin that charges for its items may pass ``pause``; it is then the last to have begun. Returns
    whether the program waits for input.
    """
    if state.mode not in (EVALUATE, APPLY):
        return False
    try:
        _advance(state, pause)
    except LispyError as fault:
        state.fail(fault)
    except NoInputError:
        return True
    return False


def _advance(state: State, pause: int | None) -> None:
    """One loop of three phases, each of which may lead to any other: evaluate, give a value, apply.

    The registers are local names while it runs; whatever is called may count steps in the state, so the
    two counts are brought together around each call.
    """
    limits = state.limits
    stop = limits.max_steps if pause is None or pause > limits.max_steps else pause
    begins = BEGINS[state.profile]
    stack = state.stack
    depth = sum(frame[0] == BODY for frame in stack)
    steps, phase = state.steps, state.mode
    form, scope, value = state.form, state.scope, None
    procedure, arguments = state.procedure, state.arguments
    try:
        while True:
            if phase is EVALUATE:
                if steps >= stop:
                    break
                steps += 1
                kind = type(form)
                if kind is list and form:
                    head = form[0]
                    begin = begins.get(head) if type(head) is Symbol else None
                    if begin is None:
                        stack.append([CALL, form, scope, []])
                        form = head
                        continue
                    value = begin(state, form, scope)
                    if value is FORM_NEXT:
                        form, scope = state.form, state.scope
                        continue
                elif kind is Symbol:
                    value = _value_of(form, scope)
                else:
                    value = None if kind is list else form
                phase = _GIVE

            if phase is _GIVE:
                if not stack:
                    state.finish(value)
                    return
                frame = stack[-1]
                kind = frame[0]
                if kind == CALL:
                    _, call, scope, done = frame
                    if not done and type(value) is Macro:
                        stack[-1] = [EXPAND, scope]
                        procedure, arguments = value, call[1:]
                    else:
                        done.append(value)
                        # Names and constants among the arguments need no frame of their own.
                        for index in range(len(done), len(call)):
                            form = call[index]
                            kind = type(form)
                            if kind is list or steps >= stop:
                                phase = EVALUATE
                                break
                            steps += 1
                            done.append(_value_of(form, scope) if kind is Symbol else form)
                        if phase is EVALUATE:
                            continue
                        stack.pop()
                        procedure = done.pop(0)
                        arguments = done
                    phase = APPLY
                elif kind == BODY:
                    form, index, scope = frame[1], frame[2], frame[3]
                    if index >= len(form):
                        stack.pop()
                        depth -= 1
                        continue
                    frame[2] = index + 1
                    form = form[index]
                    phase = EVALUATE
                    continue
                elif kind == EXPAND:
                    stack.pop()
                    form, scope = value, frame[1]
                    phase = EVALUATE
                    continue
                else:
                    state.steps = steps
                    value = RESUMES[kind](state, frame, value)
                    steps = state.steps
                    if value is FORM_NEXT:
                        form, scope = state.form, state.scope
                        phase = EVALUATE
                        continue
                    if value is not APPLICATION_NEXT:
                        continue
                    procedure, arguments = state.procedure, state.arguments
                    phase = APPLY

            if steps >= stop:
                break
            steps += 1
            state.steps = steps
            if state.cells > limits.max_cells:
                state.apply(procedure, arguments)
                check_memory(state)
                steps = state.steps
            kind = type(procedure)
            if kind is Builtin:
                if not procedure.least <= len(arguments) <= procedure.most:
                    raise _wrong_count(procedure.name, arguments)
                value = procedure.run(state, arguments)
                steps = state.steps
                if value is APPLICATION_NEXT:
                    procedure, arguments = state.procedure, state.arguments
                    continue
            elif kind is Closure or (kind is Macro and stack and stack[-1][0] == EXPAND):
                scope = _called(state, procedure, arguments)
                depth += 1
                if depth > state.peak_call_depth:
                    state.peak_call_depth = depth
                    if depth > limits.max_call_depth:
                        raise passed("call_depth", limits.max_call_depth, depth)
                form = procedure.form
                if len(form) > 2:
                    if len(stack) > limits.max_cells // FRAME_CELLS:
                        raise passed("cells", limits.max_cells, limits.max_cells + 1)
                    stack.append([BODY, form, 3, scope])
                    form = form[2]
                    phase = EVALUATE
                    continue
                depth -= 1
                value = None
            elif kind is Combined:
                value = _apply_combined(state, procedure, arguments)
                if value is APPLICATION_NEXT:
                    procedure, arguments = state.procedure, state.arguments
                    continue
            else:
                raise wrong(f"not a procedure: {shortly(procedure)}")
            phase = _GIVE
    except NoInputError:  # the application did not take place: it comes again
        steps = state.steps = steps - 1
        state.mode = APPLY
        state.apply(procedure, arguments)
        state.form, state.scope = None, state.globals
        raise
    finally:
        state.steps = max(steps, state.steps)
    if pause is None or steps < pause:
        state.steps = steps + 1
        raise passed("steps", limits.max_steps, steps + 1)
    state.mode = phase
    state.form, state.scope = (form, scope) if phase is EVALUATE else (None, state.globals)
    state.procedure, state.arguments = (procedure, arguments) if phase is APPLY else (None, [])


def _value_of(name: Symbol, scope: Scope | None) -> Any:
    while scope is not None:
        if name in scope.bindings:
            return scope.bindings[name]
        scope = scope.parent
    raise wrong(f"unbound variable: {name}")


def _called(state: State, closure: Closure, arguments: list[Any]) -> Scope:
    """The scope of a call's body."""
    names = closure.parameters
    if closure.rest is None:
        if len(arguments) != len(names):
            raise _wrong_count(closure.name or "lambda", arguments)
        bindings = dict(zip(names, arguments, strict=True))
    else:
        if len(arguments) < len(names):
            raise _wrong_count(closure.name or "lambda", arguments)
        bindings = dict(zip(names, arguments, strict=False))
        bindings[closure.rest] = state.made(arguments[len(names) :])
    state.cells += 2 + len(bindings)
    return Scope(bindings, closure.scope)


def _apply_combined(state: State, procedure: Combined, arguments: list[Any]) -> Any:
    parts = procedure.parts
    if procedure.kind == "partial":
        return state.apply(parts[0], parts[1:] + arguments)
    if procedure.kind == "constantly":
        return parts[0]
    if procedure.kind == "complement":
        state.stack.append([COMPLEMENT])
        return state.apply(parts[0], arguments)
    if not parts:
        if len(arguments) != 1:
            raise _wrong_count("compose", arguments)
        return arguments[0]
    if len(parts) > 1:
        state.stack.append([COMPOSE, parts, len(parts) - 2])
    return state.apply(parts[-1], arguments)


def _wrong_count(name: str, arguments: list[Any]) -> LispyError:
    count = len(arguments)
    return wrong(f"{name}: cannot take {count} argument{'' if count == 1 else 's'}")
