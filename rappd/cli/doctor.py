"""``rappd doctor``: one row per thing that can go wrong, each with its fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rappd.cli.command_parameters import cli_command
from rappd.cli.console import advice, arrow, print_out, status_mark, strip_control, wrapped
from rappd.cli.formatting import count
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.daemon.home import Home

if TYPE_CHECKING:
    from rappd.diagnostics.finding import Finding

_WHAT = 11  # where a finding's words begin, after the mark


@cli_command()
def doctor(printer: Printer) -> int:
    """Look for problems; each comes with its fix. Starts nothing, works with the daemon down."""
    from rappd.diagnostics.examine import examine

    with progress() as shown:
        findings = examine(Home.here(), looking_at=lambda about: shown(f"Looking at {about.lower()}…"))
    problems = sum(finding.verdict == "bad" for finding in findings)
    notes = sum(finding.verdict == "note" for finding in findings)
    body = {"doctor": [finding.as_json() for finding in findings]}
    printer.result(body, _show, findings, _sum(problems, notes))
    return 1 if problems else 0


def _show(findings: list[Finding], summed: str) -> None:
    widest = max(len(click.unstyle(status_mark(verdict))) for verdict in ("good", "note", "bad"))
    for finding in findings:
        sign = status_mark(finding.verdict)
        sign += " " * (widest - len(click.unstyle(sign)))
        indent = widest + 1 + _WHAT
        print_out(f"{sign} {finding.about:<{_WHAT - 1}} {wrapped(strip_control(finding.what), indent)}")
        if finding.do:
            print_out(f"{' ' * indent}{arrow()} {advice(finding.do, indent + 1 + len(arrow()))}")
    print_out(summed)


def _sum(problems: int, notes: int) -> str:
    if not problems and not notes:
        return "All is well."
    parts = ((problems, "problem"), (notes, "note"))
    return ", ".join(count(number, word) for number, word in parts if number) + "."
