"""A machine as a person looks at it."""

from __future__ import annotations

from typing import Any

from agents.runtimes.lispy.builtins.table import is_unchanged
from agents.runtimes.lispy.frames import BODY, FIELDS
from agents.runtimes.lispy.machine_state import APPLY, DONE, EVALUATE, State
from agents.runtimes.lispy.printer import shortly
from agents.runtimes.lispy.values import Closure

_FRAMES_SHOWN = 12
_GLOBALS_SHOWN = 40
_OUTPUT_SHOWN = 400


def inspect(state: State) -> str:
    """Lines of text: what is next, who waits for it (newest first), the globals, the end of the output."""
    limits = state.limits
    lines = [
        f"Next     {_next(state)}",
        f"Steps    {state.steps:,} of {limits.max_steps:,}",
        f"Calls    {sum(frame[0] == BODY for frame in state.stack)} deep, {state.peak_call_depth} at most so far",
    ]
    lines += _block("Waiting", [_frame(frame) for frame in reversed(state.stack)], _FRAMES_SHOWN)
    own = [
        f"{name} = {shortly(value, 60)}"
        for name, value in state.globals.bindings.items()
        if not is_unchanged(name, value)
    ]
    lines += _block("Globals", own, _GLOBALS_SHOWN)
    if state.inputs:
        lines += _block("Inputs", [shortly(value, 60) for value in state.inputs], _FRAMES_SHOWN)
    output = "".join(state.output)
    if output:
        shown = output if len(output) <= _OUTPUT_SHOWN else "…" + output[-_OUTPUT_SHOWN:]
        lines += _block("Output", shown.splitlines(), _GLOBALS_SHOWN)
    return "\n".join(lines) + "\n"


def _next(state: State) -> str:
    if state.mode is EVALUATE:
        return f"evaluate {shortly(state.form)}"
    if state.mode is APPLY:
        return f"apply {shortly(state.procedure)} to {shortly(state.arguments)}"
    if state.mode is DONE:
        return f"nothing: it gave {shortly(state.value)}"
    assert state.fault is not None
    return f"nothing: {state.fault.category}: {state.fault.message}"


def _frame(frame: list[Any]) -> str:
    name = FIELDS[frame[0]][0]
    content: Any = frame[1] if len(frame) > 1 else None
    if frame[0] == BODY:
        return f"{name:<12} of {_caller(content)}"
    return f"{name:<12} {shortly(content, 60)}" if isinstance(content, (list, Closure)) else name


def _caller(form: list[Any]) -> str:
    head = form[1]
    return shortly(head[0]) if isinstance(head, list) and head and form[0] != "lambda" else shortly(form, 60)


def _block(title: str, shown: list[str], most: int) -> list[str]:
    if not shown:
        return []
    more = [f"… and {len(shown) - most} more"] if len(shown) > most else []
    first, *rest = shown[:most] + more
    return [f"{title:<8} {first}", *(f"{'':<8} {line}" for line in rest)]
