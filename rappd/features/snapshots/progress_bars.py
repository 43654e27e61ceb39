"""A bar for each machine while a snapshot is taken; with ``--json``, each change as a line."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rappd.cli.console import redraws, strip_control, terminal_width, utf8
from rappd.cli.printer import Printer
from rappd.cli.tables import beginning
from twins.byte_sizes import format_bytes

_WIDTH = 16
_REST = 0.1
_SPEED_AFTER = 3.0


@contextmanager
def machine_bars(printer: Printer) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Gives what is told each state of the work. The bars stay when it is done."""
    if printer.for_scripts:
        yield _Lines(printer).tell
        return
    bars = _Bars()
    try:
        yield bars.tell
    finally:
        bars.finish()


class _Lines:
    def __init__(self, printer: Printer) -> None:
        self._printer = printer
        self._printed: list[dict[str, Any]] = []

    def tell(self, work: dict[str, Any]) -> None:
        events = [{"event": "machine", "machine": row.pop("name"), **row} for row in work["machines"]]
        if work["egg"]:
            events.append({"event": "drill", "state": "hatching", "path": work["egg"]})
        for event in events:
            if event not in self._printed:
                self._printer.event(event)
        self._printed = events


class _Bars:
    def __init__(self) -> None:
        self._work: dict[str, Any] = {"machines": []}
        self._begun: dict[str, float] = {}
        self._shown = redraws(sys.stderr)
        self._drawn = 0
        self._next = 0.0
        self._line = ""

    def tell(self, work: dict[str, Any]) -> None:
        self._work = work
        for row in work["machines"]:
            self._begun.setdefault(row["name"], time.monotonic())
        if work["egg"]:
            self._line = "Trying whether it can be restored…"
        if self._shown and time.monotonic() >= self._next:
            self._draw()

    def finish(self) -> None:
        """Draws the last state."""
        self._line = ""
        if self._work["machines"] and (self._shown or self._drawn == 0):
            self._draw()

    def _draw(self) -> None:
        self._next = time.monotonic() + _REST
        width = max([8, *(len(strip_control(row["name"])) for row in self._work["machines"])])
        lines = [self._row(row, width) for row in self._work["machines"]]
        lines += [self._line] if self._line else []
        up = f"\x1b[{self._drawn}A" if self._shown and self._drawn else ""
        clear = "\x1b[K" if self._shown else ""
        fit = terminal_width(sys.stderr) - 1
        text = "".join(f"{clear}{beginning(line, fit)}\n" for line in lines)
        spare = self._drawn - len(lines)
        if self._shown and spare > 0:
            text += "\x1b[K\n" * spare + f"\x1b[{spare}A"
        sys.stderr.write(up + text)
        sys.stderr.flush()
        self._drawn = len(lines)

    def _row(self, row: dict[str, Any], width: int) -> str:
        state, done, whole = row["state"], row["done"], row["whole"]
        full, empty = ("█", "░") if utf8(sys.stderr) else ("#", ".")
        share = 1.0 if state == "done" else done / whole if whole else 0.0
        filled = min(_WIDTH, int(share * _WIDTH))
        bar = f"{strip_control(row['name']):<{width}}  {full * filled}{empty * (_WIDTH - filled)}"
        if state == "no answer":
            return f"{bar}  no answer, try {row['try']} of {row['tries']}"
        word = {"done": "done", "failed": "failed", "asking": "asking"}.get(state) or (
            f"{int(100 * share):d} %" if whole else "reading"
        )
        left = ""
        passed = time.monotonic() - self._begun[row["name"]]
        if state == "reading" and whole and done and passed > _SPEED_AFTER:
            left = f"  {passed * (whole - done) / done:.0f} s left"
        return f"{bar}  {word:<8} {format_bytes(done):>9}{left}"
