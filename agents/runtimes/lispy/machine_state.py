"""The registers of one LisPy machine, and what it counts."""

from __future__ import annotations

from typing import Any

from agents.runtimes.lispy.errors import LispyError, passed, wrong
from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.number_format import SMALL_BITS
from agents.runtimes.lispy.values import Pair, Scope

LANGUAGE = "lispy-core@1"

EVALUATE = "evaluate"  # next: `form` in `scope`
APPLY = "apply"  # next: `procedure` to `arguments`
DONE = "done"  # there is a `value`
FAILED = "failed"  # there is a `fault`

FORM_NEXT: Any = object()
"""Stands for a value that is not there yet: the state says which form gives it."""
APPLICATION_NEXT: Any = object()
"""Stands for a value that is not there yet: the state says which application gives it."""

_FREE_ITEMS = 64
_CHARACTERS_IN_A_CELL = 32
_LARGEST_COUNT = (1 << 53) - 1  # that every JSON reader takes


class State:
    """Everything a machine consists of; between two steps, nothing else is needed to go on.

    ``mode`` says which registers count. ``stack`` holds the frames (``agents.runtimes.lispy.frames``) that wait
    for a value, the newest last. ``cells`` is what was made since memory was last counted. ``inputs``
    is what ``next-input`` will give, or None where there is no such procedure.
    """

    __slots__ = (
        "arguments",
        "cells",
        "fault",
        "form",
        "globals",
        "inputs",
        "limits",
        "mode",
        "output",
        "output_bytes",
        "peak_call_depth",
        "procedure",
        "profile",
        "scope",
        "stack",
        "steps",
        "value",
    )

    def __init__(self, limits: Limits, profile: str, bound: Scope, inputs: list[Any] | None) -> None:
        self.limits = limits
        self.profile = profile
        self.globals = bound
        self.inputs = inputs
        self.mode = DONE
        self.form: Any = None
        self.scope = bound
        self.procedure: Any = None
        self.arguments: list[Any] = []
        self.value: Any = None
        self.fault: LispyError | None = None
        self.stack: list[list[Any]] = []
        self.steps = 0
        self.peak_call_depth = 0
        self.cells = 0
        self.output: list[str] = []
        self.output_bytes = 0

    def evaluate(self, form: Any, scope: Scope) -> Any:
        """Makes the value of ``form`` the one that the newest frame waits for."""
        self.form = form
        self.scope = scope
        return FORM_NEXT

    def apply(self, procedure: Any, arguments: list[Any]) -> Any:
        """Makes what ``procedure`` gives for ``arguments`` the value that the newest frame waits for."""
        self.procedure = procedure
        self.arguments = arguments
        return APPLICATION_NEXT

    def charge(self, steps: int) -> None:
        """Counts steps beyond the one that each evaluation and application costs."""
        self.steps += steps
        limit = self.limits.max_steps
        if self.steps > limit:
            self.steps = limit + 1
            raise passed("steps", limit, limit + 1)

    def work(self, items: int) -> None:
        """Charges for going through ``items`` where the published count has no charge.

        A step for every 64 whole ones: small programs count as published, and no step can be made to
        take long.
        """
        if items >= _FREE_ITEMS:
            self.charge(items // _FREE_ITEMS)

    def reading(self, text: str) -> str:
        """``text``, and the charge for going through it."""
        if len(text) >= 1024:
            self.work(len(text) >> 4)
        return text

    def fits(self, items: int) -> None:
        """Ends the program if a collection of so many items would be too large."""
        limit = self.limits.max_collection_items
        if items > limit:
            raise passed("collection_items", limit, min(items, _LARGEST_COUNT))

    def made(self, items: list[Any]) -> list[Any]:
        """A new list of the program's: checked and counted."""
        self.fits(len(items))
        self.cells += 1 + len(items)
        return items

    def made_map(self, entries: dict[str, Any]) -> dict[str, Any]:
        """A new map of the program's: checked and counted."""
        self.fits(len(entries))
        self.cells += 1 + 2 * len(entries)
        return entries

    def made_text(self, text: str) -> str:
        """A new string of the program's: checked and counted."""
        self.fits(len(text))
        self.cells += len(text) // _CHARACTERS_IN_A_CELL
        return text

    def made_pair(self, car: Any, cdr: Any) -> Pair:
        """A new pair of the program's: counted."""
        self.cells += 3
        return Pair(car, cdr)

    def made_integer(self, number: int) -> int:
        """A new integer of the program's: checked, and charged for when it is long."""
        bits = number.bit_length()
        if bits > SMALL_BITS:
            limit = self.limits.max_integer_bits
            if bits > limit:
                raise passed("integer_bits", limit, bits)
            self.cells += bits >> 8
            if bits >= 1024:
                self.work(bits >> 2)
        return number

    def finite(self, name: str, number: float) -> float:
        """``number``, unless it is an infinity or not a number."""
        if number - number != 0.0:
            raise wrong(f"{name}: the result is out of range")
        return number

    def write(self, text: str) -> None:
        """Appends to the output. Raises ``LispyError`` when there is too much of it."""
        size = self.output_bytes + (len(text) if text.isascii() else len(text.encode()))
        if size > self.limits.max_output_bytes:
            raise passed("output_bytes", self.limits.max_output_bytes, size)
        self.output_bytes = size
        self.output.append(text)
        self.reading(text)

    def fail(self, fault: LispyError) -> None:
        """Ends the program with ``fault``."""
        self.mode = FAILED
        self.fault = fault
        self.stack.clear()
        self._let_go()

    def finish(self, value: Any) -> None:
        """Ends the program with ``value``."""
        self.mode = DONE
        self.value = value
        self._let_go()

    def _let_go(self) -> None:
        self.form = self.procedure = None
        self.scope = self.globals
        self.arguments = []
