"""Long work on eggs in the terminal: its phases in per cent, and Ctrl-C, which cancels it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import click

from envelopes.errors import ReportableError
from rappd.cli.console import print_err, print_error
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from twins.byte_sizes import format_bytes
from twins.work_progress import Progress, WorkCancelledError

_SECONDS = 3600.0
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
    with progress(f"{what}…") as shown:

        def told(phase: str, done: int, whole: int) -> None:
            per_cent = 100 * done // whole if whole else 100
            octets = "" if phase in _COUNTED else f"  {format_bytes(done)} of {format_bytes(whole)}"
            shown(f"{what}: {_PHASES.get(phase, phase)} {per_cent} %{octets}")

        yield told


def followed(
    name: str,
    what: str,
    printer: Printer,
    *,
    reads: bool = False,
    needs_daemon: bool = False,
    **given: Any,
) -> dict[str, Any]:
    """The answer of an operation that takes a while, with its phases shown.

    Ctrl-C cancels it; then the command ends with 130. What only ``reads`` leaves the home as it is.
    """
    here, work = Home.here(), str(uuid.uuid4())
    home = (
        ControlClient(here, timeout=_SECONDS)
        if needs_daemon
        else HomeClient(here, reads=reads or here.is_read_only(), timeout=_SECONDS)
    )
    try:
        with bar(what) as progress:
            return home.follow(
                name,
                lambda event: progress(event["phase"], event["done"], event["whole"]),
                work=work,
                **given,
            )
    except KeyboardInterrupt:
        try:
            home.do("eggs.cancel", work=work)
        except ReportableError as problem:
            _end(problem, printer)
        _end(WorkCancelledError(), printer)


def _end(problem: ReportableError, printer: Printer) -> NoReturn:
    """Ends the command as Ctrl-C does, with the reason."""
    if isinstance(problem, WorkCancelledError) and not printer.for_scripts:
        print_err(str(problem))
    else:
        print_error(str(problem), problem.do, problem.code, as_json=printer.for_scripts)
    raise click.exceptions.Exit(130)
