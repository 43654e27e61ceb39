"""A bar for each machine while a snapshot is taken; with ``--json``, each event as a line."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rappd.cli.console import print_json_line, redraws, strip_control, terminal_width, utf8
from rappd.cli.tables import beginning
from twins.byte_sizes import format_bytes

_WIDTH = 16
_REST = 0.1
_SPEED_AFTER = 3.0


@contextmanager
def machine_bars(*, as_json: bool) -> Iterator[Callable[[dict[str, Any]], None]]:
    """Gives what is told each event, from any thread. The bars stay when the work is done."""
    if as_json:
        lines = _Lines()
        yield lines.tell
        return
    bars = _Bars()
    try:
        yield bars.tell
    finally:
        bars.finish()


class _Lines:
    """Ten events a second and machine at most; changes of state always."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._last: dict[str, tuple[str, float]] = {}

    def tell(self, event: dict[str, Any]) -> None:
        with self._lock:
            key = str(event.get("machine", event.get("name", "")))
            state, at = self._last.get(key, ("", 0.0))
            if (
                event.get("event") == "machine"
                and event.get("state") == state
                and time.monotonic() - at < _REST
            ):
                return
            self._last[key] = (str(event.get("state", "")), time.monotonic())
            print_json_line(event)


class _Bars:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[str, tuple[str, int, int, float]] = {}
        self._tries: dict[str, str] = {}
        self._shown = redraws(sys.stderr)
        self._drawn = 0
        self._next = 0.0
        self._line = ""

    def tell(self, event: dict[str, Any]) -> None:
        with self._lock:
            if event["event"] == "machine":
                begun = self._rows.get(event["machine"], ("", 0, 0, time.monotonic()))[3]
                self._rows[event["machine"]] = (event["state"], event["done"], event["whole"], begun)
                if "try" in event:
                    self._tries[event["machine"]] = f"no answer, try {event['try']} of {event['tries']}"
            elif event["event"] == "drill":
                self._line = "Trying whether it can be restored…"
            if self._shown and time.monotonic() >= self._next:
                self._draw()

    def finish(self) -> None:
        """Draws the last state."""
        with self._lock:
            self._line = ""
            if self._rows and (self._shown or self._drawn == 0):
                self._draw()

    def _draw(self) -> None:
        self._next = time.monotonic() + _REST
        width = max([8, *(len(strip_control(name)) for name in self._rows)])
        lines = [self._row(name, width) for name in self._rows]
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

    def _row(self, name: str, width: int) -> str:
        state, done, whole, begun = self._rows[name]
        full, empty = ("█", "░") if utf8(sys.stderr) else ("#", ".")
        share = 1.0 if state == "done" else done / whole if whole else 0.0
        filled = min(_WIDTH, int(share * _WIDTH))
        bar = full * filled + empty * (_WIDTH - filled)
        if state == "no answer":
            return f"{strip_control(name):<{width}}  {bar}  {self._tries[name]}"
        said = {"done": "done", "failed": "failed", "asking": "asking"}.get(state) or (
            f"{int(100 * share):d} %" if whole else "reading"
        )
        left = ""
        passed = time.monotonic() - begun
        if state == "reading" and whole and done and passed > _SPEED_AFTER:
            left = f"  {passed * (whole - done) / done:.0f} s left"
        return f"{strip_control(name):<{width}}  {bar}  {said:<8} {format_bytes(done):>9}{left}"
