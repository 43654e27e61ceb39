"""Load, run, save, load, run, save: a LisPy cartridge goes on where it left off, byte for byte.

A frame runs the entry program once, on a fresh machine. Its globals are what earlier frames defined and
``lispy-value@1`` can say (procedures are defined anew by the program itself), and by the published
convention ``prev-result`` (nil at first), ``echo-frame`` (from 1 on, over all runs) and ``agent-id``;
``prior-echo`` is the last echo. ``(next-input)`` takes what is pending; a program that defines ``run``
has it applied to the next pending input. A frame counts when it comes to its end: one that fails leaves
the cartridge as it was, one that is frozen under way takes the whole machine along.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from agents.runtimes.lispy.errors import BadImageError, BadValueError, LispyError
from agents.runtimes.lispy.limits import CEILING, Limits
from agents.runtimes.lispy.machine import Machine, Outcome
from agents.runtimes.lispy.reader import read
from agents.runtimes.lispy.value_codec import from_wire, to_wire
from agents.runtimes.lispy.values import Macro, Symbol, is_procedure
from twins.cartridges.json_documents import Document, levels, same
from twins.cartridges.lispy_file import MAX_ECHOES, agent_id, checked, dialect_of, entry_of, saved
from twins.errors import BadCartridgeError

DONE = "done"
ERROR = "error"
FROZEN = "frozen"
WAITING = "waiting"

DEEPEST = 60
"""Levels of JSON that a value may have to be kept between frames; a file allows some more around it."""

_GIVEN = frozenset({"prev-result", "echo-frame", "agent-id", "prior-echo"})


@dataclass(slots=True, frozen=True)
class RunResult:
    """The result of a run. ``document``: the cartridge as it is to be saved.

    ``status``: done, error (the last frame failed), frozen (out of steps), waiting (for input).
    ``output``: what all frames wrote. ``frames``: ``{frame, result | error}`` each. ``notes``: what a person
    should know.
    """

    document: Document
    status: str
    output: str
    frames: list[dict[str, Any]]
    steps: int
    notes: list[str]

    def as_json(self) -> dict[str, Any]:
        """The published answer to an invocation, and ``steps`` and ``notes``."""
        return {
            "status": self.status,
            "output": self.output,
            "echo_frames_run": sum("result" in frame for frame in self.frames),
            "frames": self.frames,
            "steps": self.steps,
            "notes": self.notes,
        }


def run(
    document: Document,
    *,
    frames: int = 1,
    steps: int | None = None,
    inputs: Sequence[Any] = (),
    limits: Limits | None = None,
    ceiling: Limits = CEILING,
    now: datetime | None = None,
) -> RunResult:
    """Runs up to ``frames`` frames, of ``steps`` steps altogether; the given document stays untouched.

    ``inputs`` (JSON) join those that are pending. ``limits`` hold for each frame and end it with an error;
    ``steps`` freezes it where it is. ``ceiling``: what a frozen machine may allow itself. Raises
    ``BadCartridgeError``.
    """
    checked(document)
    running = _Run(copy.deepcopy(document), limits or Limits(), ceiling, steps)
    if not all(map(_is_json, inputs)):
        raise BadCartridgeError(
            "An input is not JSON; nothing was run.", do="Send text, numbers, lists or objects."
        )
    running.pending.extend(copy.deepcopy(list(inputs)))
    status = DONE
    for _ in range(frames):
        status = running.frame()
        if status != DONE:
            break
    return RunResult(
        saved(running.document, now),
        status,
        "".join(running.output),
        running.reports,
        running.steps,
        list(dict.fromkeys(running.notes)),
    )


def inspect(document: Document, *, ceiling: Limits = CEILING) -> str:
    """A summary of a frozen machine for people; "" when none is under way. Raises ``BadCartridgeError``."""
    checked(document)
    image = document.get("continuation", {}).get("image")
    return _thawed(image, ceiling).inspect() if image is not None else ""


@dataclass(slots=True)
class _Run:
    """A cartridge while it runs; ``document`` changes only when a frame ends, or is frozen."""

    document: Document
    limits: Limits
    ceiling: Limits
    left: int | None
    output: list[str] = field(default_factory=list)
    reports: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    steps: int = 0

    @property
    def continuation(self) -> Document:
        found: Document = self.document.setdefault("continuation", {})
        found.setdefault("frame", 0)
        found.setdefault("pending_inputs", [])
        found.setdefault("last_state", {})
        return found

    @property
    def pending(self) -> list[Any]:
        found: list[Any] = self.continuation["pending_inputs"]
        return found

    def frame(self) -> str:
        """One frame, or what is left of one. Returns how it ended."""
        if self.left == 0:
            return FROZEN
        machine = self._machine()
        before = machine.outcome.steps
        outcome = machine.run(self.left)
        self.steps += outcome.steps - before
        if self.left is not None:
            self.left = max(0, self.left - (outcome.steps - before))
        if outcome.fault is not None:
            self.output.append(outcome.stdout)
            self.reports.append({"frame": self.continuation["frame"] + 1, "error": outcome.fault.as_json()})
            return ERROR
        image = machine.freeze()
        self.continuation["pending_inputs"] = self.pending[len(self.pending) - len(image["inputs"]) :]
        if not outcome.ok:
            self.continuation["image"] = image
            return WAITING if outcome.status == "waiting" else FROZEN
        self._keep_env(machine, [name for name, _ in image["scopes"][0]["bindings"]])
        self._end(outcome)
        return DONE

    def _machine(self) -> Machine:
        """The machine of this frame: thawed, or fresh."""
        image = self.continuation.get("image")
        if image is not None:
            machine = _thawed(image, self.ceiling)
            inside = image["inputs"]
            if inside is None or len(inside) > len(self.pending):
                raise BadCartridgeError(
                    "The frozen machine waits for other inputs than pending_inputs has; nothing was run.",
                    do="Put them back, or take out the image.",
                )
            machine.give(*self.pending[len(inside) :])
            return machine
        bindings = self._env()
        bindings["prev-result"] = self._value(self.continuation["last_state"].get("prev-result"))
        bindings["echo-frame"] = self.continuation["frame"] + 1
        bindings["agent-id"] = agent_id(self.document)
        bindings["prior-echo"] = (self.document.get("echoes") or [None])[-1]
        entry = entry_of(self.document)
        return Machine(
            self._program(self.document["programs"][entry]),
            limits=self.limits,
            profile=dialect_of(self.document),
            inputs=self.pending,
            bindings=bindings,
            named=entry,
        )

    def _program(self, source: str) -> str | list[Any]:
        """The program; with ``(run (next-input))`` behind it when it defines ``run`` and something waits."""
        try:
            forms = read(source, self.limits) if self.pending else []
        except LispyError:  # the machine will say it, and where
            return source
        if any(type(form) is list and _defines_run(form) for form in forms):
            return [*forms, [Symbol("run"), [Symbol("next-input")]]]
        return source

    def _end(self, outcome: Outcome) -> None:
        continuation = self.continuation
        continuation["frame"] += 1
        continuation["last_state"]["prev-result"] = _wire(outcome.value) or to_wire(None)
        continuation.pop("image", None)
        shown = outcome.shown()
        self.output.append(outcome.stdout)
        self.reports.append({"frame": continuation["frame"], "result": shown})
        echo = {"frame": continuation["frame"], "result": shown, "output": outcome.stdout}
        self.document["echoes"] = [*self.document.get("echoes", []), echo][-MAX_ECHOES:]

    def _env(self) -> dict[str, Any]:
        """The definitions of earlier frames. A value that somebody changed in ``env`` counts before the exact one."""
        plain = self.document.get("env", {})
        exact = self.document.get("env_wire")
        if exact is None:  # as published
            return dict(plain)
        found = {name: self._value(wire) for name, wire in exact.items()}
        for name, value in plain.items():
            if name not in found or not same(found[name], value):
                self.notes.append(f"{name} was changed by hand.")
                found[name] = value
        return found

    def _keep_env(self, machine: Machine, names: list[str]) -> None:
        exact: Document = {}
        plain: Document = {}
        for name in names:
            if name in _GIVEN:
                continue
            value = machine.lookup(name)
            wire = _wire(value)
            if wire is not None:
                exact[name] = wire
                if _is_json(value):
                    plain[name] = value
            elif not is_procedure(value) and type(value) is not Macro:
                self.notes.append(f"{name} cannot be kept from frame to frame.")
        self.document["env"] = plain
        self.document["env_wire"] = exact

    def _value(self, wire: Any) -> Any:
        if wire is None:
            return None
        try:
            return from_wire(wire)
        except BadValueError as error:
            raise BadCartridgeError(
                f"The cartridge is damaged: {error}; nothing was run.", do="Mend it."
            ) from error


def _thawed(image: Any, ceiling: Limits) -> Machine:
    try:
        return Machine.thaw(image, ceiling=ceiling)
    except BadImageError as error:
        raise BadCartridgeError(str(error), do=error.do or "Get the cartridge again.") from error


def _defines_run(form: list[Any]) -> bool:
    if len(form) < 2 or form[0] != "define" or type(form[0]) is not Symbol:
        return False
    name = form[1][0] if type(form[1]) is list and form[1] else form[1]
    return type(name) is Symbol and name == "run"


def _wire(value: Any) -> dict[str, Any] | None:
    """The value in ``lispy-value@1``; None for what has no such form, or one too deep for a file."""
    try:
        wire = to_wire(value)
    except LispyError:
        return None
    return wire if levels(wire) <= DEEPEST else None


def _is_json(value: Any) -> bool:
    """True when JSON says exactly this value."""
    kind = type(value)
    if kind is list:
        return all(map(_is_json, value))
    if kind is dict:
        return all(map(_is_json, value.values()))
    if kind is int:
        return bool(-(1 << 63) <= value < 1 << 64)
    return value is None or kind in (bool, float, str)
