"""Long work on eggs in the terminal: its phases in per cent, and Ctrl-C, which cancels it."""

from __future__ import annotations

import signal
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from envelopes.errors import ReportableError
from rappd.cli.console import print_err, print_error, print_status
from rappd.cli.progress import progress
from rappd.control_client import ConnectionLostError, ControlClient, ResponseError
from twins.byte_sizes import format_bytes
from twins.work_progress import Cancellation, Progress, TooLateToCancelError, WorkCancelledError

_COUNTED = ("sync", "move", "merge")
_PHASES = {
    "check": "checking",
    "check base": "checking BASE",
    "check ours": "checking OURS",
    "check theirs": "checking THEIRS",
    "stage": "unpacking",
    "save": "packing what is there",
    "sync": "writing to the disk",
    "move": "moving into place",
    "look": "looking for secrets",
    "pack": "packing",
    "merge": "merging",
}


@contextmanager
def bar(what: str) -> Iterator[Progress]:
    """A line with phase, per cent and bytes, for work that tells how far it is."""
    with progress() as line:
        line(f"{what}…")

        def told(phase: str, done: int, whole: int) -> None:
            per_cent = 100 * done // whole if whole else 100
            octets = "" if phase in _COUNTED else f"  {format_bytes(done)} of {format_bytes(whole)}"
            line(f"{what}: {_PHASES.get(phase, phase)} {per_cent} %{octets}")

        yield told


@contextmanager
def cancelled_by_interrupt(*, as_json: bool) -> Iterator[Cancellation]:
    """Ctrl-C cancels the work of this process. Ends the command with 130 when it was cancelled."""
    cancellation = Cancellation()
    too_late: list[TooLateToCancelError] = []

    def interrupted(number: int, frame: object) -> None:
        try:
            cancellation.cancel()
        except TooLateToCancelError as problem:
            too_late.append(problem)

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        yield cancellation
    except WorkCancelledError as problem:
        _end(problem, as_json=as_json)
    finally:
        signal.signal(signal.SIGINT, before)
        for late in too_late[:1]:
            print_status("note", str(late), late.do, stream=sys.stderr)


def hatched(home: ControlClient, body: dict[str, Any], what: str, *, as_json: bool) -> dict[str, Any]:
    """The answer of ``POST /eggs/hatch``. Ctrl-C cancels it there; then the command ends with 130."""
    work = str(uuid.uuid4())
    try:
        with bar(what) as told:
            for event in home.events("/eggs/hatch", {**body, "work": work}, accept="text/event-stream"):
                if event["type"] == "progress":
                    told(event["phase"], event["done"], event["whole"])
                elif event["type"] == "done":
                    return {key: value for key, value in event.items() if key != "type"}
                else:
                    refusal = {key: value for key, value in event.items() if key not in ("type", "status")}
                    raise ResponseError(refusal, event["status"])
    except KeyboardInterrupt:
        try:
            home.post("/eggs/cancel", {"work": work})
        except ReportableError as problem:
            _end(problem, as_json=as_json)
        _end(WorkCancelledError(), as_json=as_json)
    raise ConnectionLostError


def _end(problem: ReportableError, *, as_json: bool) -> NoReturn:
    """Ends the command as Ctrl-C does, with the reason."""
    if isinstance(problem, WorkCancelledError) and not as_json:
        print_err(str(problem))
    else:
        print_error(str(problem), problem.do, problem.code, as_json=as_json)
    raise click.exceptions.Exit(130)
