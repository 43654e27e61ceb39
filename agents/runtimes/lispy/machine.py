"""A LisPy machine: a program that runs step by step, and can be carried away in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from agents.runtimes.lispy.builtins.table import starting_globals
from agents.runtimes.lispy.conversion import check
from agents.runtimes.lispy.errors import BadValueError, LispyError
from agents.runtimes.lispy.evaluator import advance
from agents.runtimes.lispy.image.deserialize import thaw
from agents.runtimes.lispy.image.serialize import freeze, image_text
from agents.runtimes.lispy.inspect import inspect
from agents.runtimes.lispy.limits import CEILING, Limits
from agents.runtimes.lispy.machine_state import APPLY, DONE, EVALUATE, FAILED, FORM_NEXT, State
from agents.runtimes.lispy.printer import TextTooLongError, printed
from agents.runtimes.lispy.profiles import BEGINS
from agents.runtimes.lispy.reader import read
from agents.runtimes.lispy.special_forms import in_sequence
from agents.runtimes.lispy.value_codec import to_wire
from agents.runtimes.lispy.values import Symbol, is_procedure

Status = Literal["done", "failed", "paused", "waiting"]


@dataclass(slots=True, frozen=True)
class Outcome:
    """The state of a machine. ``value`` counts when done, ``fault`` when failed; ``stdout`` is all so far.

    ``paused``: the steps asked for are done. ``waiting``: ``next-input`` found nothing.
    """

    status: Status
    value: Any
    fault: LispyError | None
    stdout: str
    steps: int
    peak_call_depth: int

    @property
    def ok(self) -> bool:
        """True when the program came to its end."""
        return self.status == "done"

    def shown(self, most: int = 1 << 20) -> str:
        """The value as a program writes it; cut after ``most`` characters."""
        try:
            return printed(self.value, most)
        except TextTooLongError:
            return f"(longer than {most} characters)"

    def as_json(self) -> dict[str, Any]:
        """``{status, stdout, usage}`` and ``{repr, wire}`` or ``{error}``; ``wire`` is null for what has none."""
        usage = {"steps": self.steps, "peak_call_depth": self.peak_call_depth}
        report: dict[str, Any] = {"status": self.status, "stdout": self.stdout, "usage": usage}
        if self.ok:
            report["repr"] = self.shown()
            try:
                report["wire"] = to_wire(self.value)
            except LispyError:
                report["wire"] = None
        if self.fault is not None:
            report["error"] = self.fault.as_json()
        return report


class Machine:
    """Runs one program. Two machines share nothing, and none of them touches anything outside."""

    def __init__(
        self,
        source: str | Sequence[Any],
        *,
        limits: Limits | None = None,
        profile: str = "core",
        inputs: Sequence[Any] | None = None,
        bindings: Mapping[str, Any] | None = None,
        named: str = "<vm>",
    ) -> None:
        """``source`` is text, or forms that were read from one. Text that cannot be read is an outcome.

        ``profile``: core or rappterbook. ``inputs`` are values that the program takes with
        ``(next-input)``; None: it cannot. ``bindings`` are globals of its own; ``named`` stands before the
        place of a mistake in the text. Raises ``BadValueError`` for what is no value of the language.
        """
        if profile not in BEGINS:
            raise BadValueError(f"There is no LisPy profile {profile!r}.", do="Use core or rappterbook.")
        waiting = None if inputs is None else list(inputs)
        check([*(waiting or ()), *(bindings or {}).values()])
        scope = starting_globals(with_input=waiting is not None)
        scope.bindings.update((Symbol(name), value) for name, value in (bindings or {}).items())
        self._state = state = State(limits or Limits(), profile, scope, waiting)
        try:
            forms = read(source, state.limits, named=named) if isinstance(source, str) else list(source)
            check([forms])
        except LispyError as fault:
            state.fail(fault)
            return
        if in_sequence(state, forms, 0, scope) is FORM_NEXT:
            state.mode = EVALUATE

    @classmethod
    def thaw(cls, image: Any, *, ceiling: Limits = CEILING) -> Machine:
        """The machine that ``freeze`` wrote down. Raises ``BadImageError``, also for limits above ``ceiling``."""
        machine = cls.__new__(cls)
        machine._state = thaw(image, ceiling)
        return machine

    def freeze(self) -> dict[str, Any]:
        """The machine as it is now, as ``lispy-image/1.0`` (``agents.runtimes.lispy.image``). It can go on all the same."""
        return freeze(self._state)

    def freeze_text(self) -> str:
        """The same as JSON text; the same machine always gives the same text."""
        return image_text(self.freeze())

    def run(self, max_steps: int | None = None) -> Outcome:
        """Goes on: to the end, until it waits, or for ``max_steps`` steps.

        A builtin that goes through many items costs many steps, and is not interrupted.
        """
        state = self._state
        waits = advance(state, None if max_steps is None else state.steps + max_steps)
        return self._outcome(waits=waits)

    def step(self) -> Outcome:
        """One evaluation or application."""
        return self.run(1)

    @property
    def outcome(self) -> Outcome:
        """The present state, without a step."""
        return self._outcome(waits=False)

    def _outcome(self, *, waits: bool) -> Outcome:
        state = self._state
        status: Status = "waiting" if waits else "paused"
        if state.mode is DONE:
            status = "done"
        elif state.mode is FAILED:
            status = "failed"
        output = "".join(state.output)
        state.output = [output]  # so that asking after every step stays cheap
        return Outcome(status, state.value, state.fault, output, state.steps, state.peak_call_depth)

    def give(self, *values: Any) -> None:
        """Hands in values for ``next-input``. Raises ``BadValueError`` where the program cannot ask for any."""
        if self._state.inputs is None:
            raise BadValueError("This program takes no input.", do="Start it with inputs.")
        check(values)
        self._state.inputs += values

    def lookup(self, name: str) -> Any:
        """The value that a global name is bound to. Raises ``KeyError``."""
        return self._state.globals.bindings[Symbol(name)]

    def call(self, name: str, *arguments: Any) -> None:
        """Makes the machine, which has ended, apply one of its procedures next.

        Its globals stay; steps, peak and output start anew. Raises ``BadValueError``.
        """
        state = self._state
        procedure = state.globals.bindings.get(Symbol(name))
        if state.mode not in (DONE, FAILED):
            raise BadValueError("The program is still running.", do="Let it end first.")
        if not is_procedure(procedure):
            raise BadValueError(f"The program has no procedure {name}.", do=f"Add (define ({name} …) …).")
        check(arguments)
        state.steps = state.peak_call_depth = state.output_bytes = 0
        state.output = []
        state.value = state.fault = None
        state.apply(procedure, list(arguments))
        state.mode = APPLY

    def inspect(self) -> str:
        """A summary for people: present work, globals, and limits used."""
        return inspect(self._state)
