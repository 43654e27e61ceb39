"""Reading a machine back. Nothing in an image is believed: what does not hold together is refused."""

from __future__ import annotations

from typing import Any

from agents.runtimes.lispy.builtins.table import BUILTINS, INPUT_BUILTINS, starting_globals
from agents.runtimes.lispy.errors import BadImageError, BadValueError, LispyError
from agents.runtimes.lispy.frames import BODY, DOTIMES, FIELDS, PIPE, UNLESS, WHEN
from agents.runtimes.lispy.image.checking import is_sound
from agents.runtimes.lispy.image.image_heap import Parts, array_in, bad, exactly, number_in, object_in
from agents.runtimes.lispy.image.serialize import SCHEMA
from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.machine_state import APPLY, DONE, EVALUATE, FAILED, LANGUAGE, State
from agents.runtimes.lispy.profiles import BEGINS

_KEYS = [
    "schema",
    "language",
    "profile",
    "limits",
    "usage",
    "output",
    "inputs",
    "next",
    "stack",
    "scopes",
    "heap",
]
_KINDS = {name: kind for kind, (name, _) in FIELDS.items()}
_RAPPTERBOOK_ONLY = frozenset({WHEN, UNLESS, PIPE, DOTIMES})


def thaw(image: Any, ceiling: Limits) -> State:
    """The machine in ``image``. Raises ``BadImageError`` for anything that no machine within ``ceiling`` wrote."""
    try:
        return _Reading(image, ceiling).state()
    except BadValueError as error:
        bad("a value", str(error))


class _Reading:
    def __init__(self, image: Any, ceiling: Limits) -> None:
        self._image = object_in(image, "the image")
        self._ceiling = ceiling

    def state(self) -> State:
        image = self._image
        if image.get("schema") != SCHEMA:
            bad("schema", f"not {SCHEMA}")
        exactly(image, _KEYS, "the image")
        if image["language"] != LANGUAGE:
            bad("language", f"not {LANGUAGE}")
        if type(image["profile"]) is not str or image["profile"] not in BEGINS:
            bad("profile", "not a known one")
        self._limits = self._read_limits()
        with_input = image["inputs"] is not None
        first = starting_globals(with_input=with_input)
        self._parts = Parts(self._limits, INPUT_BUILTINS if with_input else BUILTINS, first)
        self._parts.read(image["scopes"], image["heap"])
        inputs = self._parts.values(image["inputs"], "inputs") if with_input else None
        state = State(self._limits, image["profile"], first, inputs)
        for place, written in enumerate(array_in(image["stack"], "stack")):
            state.stack.append(self._frame(object_in(written, f"stack {place}"), f"stack {place}"))
        self._read_output(state)
        self._read_registers(state)
        self._read_usage(state)
        return state

    def _read_limits(self) -> Limits:
        given = object_in(self._image["limits"], "limits")
        exactly(given, list(Limits().as_json()), "limits")
        try:
            limits = Limits.of(given)
        except ValueError as error:
            bad("limits", str(error))
        if not limits.within(self._ceiling):
            raise BadImageError(
                "This program wants more than is allowed here; nothing was run.",
                do="Lower the limits in its image, or allow more.",
            )
        return limits

    def _read_output(self, state: State) -> None:
        output = self._image["output"]
        if type(output) is not str:
            bad("output", "not text")
        try:
            state.output_bytes = len(output.encode())
        except UnicodeEncodeError:
            bad("output", "it holds half a character")
        if state.output_bytes > self._limits.max_output_bytes:
            bad("output", "longer than its limit")
        state.output = [output] if output else []

    def _read_usage(self, state: State) -> None:
        usage = object_in(self._image["usage"], "usage")
        exactly(usage, ["steps", "peak_call_depth", "cells"], "usage")
        state.steps = number_in(usage["steps"], "usage steps")
        state.peak_call_depth = number_in(usage["peak_call_depth"], "usage peak_call_depth")
        state.cells = number_in(usage["cells"], "usage cells")
        spare = 1 if state.mode is FAILED else 0  # the step, or call, that was one too many
        depth = sum(frame[0] == BODY for frame in state.stack)
        if state.steps > self._limits.max_steps + spare:
            bad("usage steps", "above its limit")
        if not depth <= state.peak_call_depth <= self._limits.max_call_depth + spare:
            bad("usage peak_call_depth", "not what the stack shows, or above its limit")

    def _read_registers(self, state: State) -> None:
        written = object_in(self._image["next"], "next")
        mode = written.get("mode")
        if mode == EVALUATE:
            exactly(written, ["mode", "form", "scope"], "next")
            state.mode = EVALUATE
            state.form = self._parts.value(written["form"], "next form")
            state.scope = self._parts.scope(written["scope"], "next scope")
        elif mode == APPLY:
            exactly(written, ["mode", "procedure", "arguments"], "next")
            state.mode = APPLY
            state.procedure = self._parts.value(written["procedure"], "next procedure")
            state.arguments = self._parts.values(written["arguments"], "next arguments")
        elif mode == DONE:
            exactly(written, ["mode", "value"], "next")
            state.value = self._parts.value(written["value"], "next value")
        elif mode == FAILED:
            exactly(written, ["mode", "error"], "next")
            state.mode = FAILED
            state.fault = self._fault(object_in(written["error"], "next error"))
        else:
            bad("next", "no known mode")
        if state.mode in (DONE, FAILED) and state.stack:
            bad("next", "it has ended, and yet something waits")

    def _fault(self, written: dict[str, Any]) -> LispyError:
        where = "next error"
        exactly(written, ["category", "message", "resource", "limit", "used"], where)
        category, resource = written["category"], written["resource"]
        if type(category) is not str or category not in LispyError.CATEGORIES:
            bad(where, "no known category")
        if resource is None:
            if written["limit"] is not None or written["used"] is not None:
                bad(where, "a limit of nothing")
        else:
            resource = self._parts.text(resource, where)
            number_in(written["limit"], where)
            number_in(written["used"], where)
        message = self._parts.text(written["message"], where)
        return LispyError(category, message, resource=resource, limit=written["limit"], used=written["used"])

    def _frame(self, written: dict[str, Any], where: str) -> list[Any]:
        name = written.get("kind")
        if type(name) is not str or name not in _KINDS:
            bad(where, "no known kind")
        kind = _KINDS[name]
        fields = FIELDS[kind][1]
        exactly(written, ["kind", *fields], where)
        frame: list[Any] = [kind]
        for field, holds in fields.items():
            given = written[field]
            if holds == "number":
                frame.append(-1 if kind == DOTIMES and given == -1 else number_in(given, where))
            elif holds == "scope":
                frame.append(self._parts.scope(given, where))
            elif holds == "own":
                frame.append(self._parts.values(given, where))
            else:
                value = self._parts.value(given, where)
                if holds in ("list", "map") and type(value) is not (list if holds == "list" else dict):
                    bad(where, f"{field} is not a {holds}")
                frame.append(value)
        if kind in _RAPPTERBOOK_ONLY and self._image["profile"] == "core":
            bad(where, "not of this profile")
        if not is_sound(frame):
            bad(where, "its parts do not go together")
        return frame
