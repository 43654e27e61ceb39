"""``rappd doctor``: one row per thing that can go wrong, each with its fix."""

from __future__ import annotations

import click

from rappd.cli.screen import arrow, command, mark, print_json, say
from rappd.home import Home


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def doctor(as_json: bool) -> int:
    """Look for problems; each comes with its fix. Starts nothing, works with the daemon down."""
    from rappd.examination import examine

    findings = examine(Home.here())
    problems = sum(finding.verdict == "bad" for finding in findings)
    notes = sum(finding.verdict == "note" for finding in findings)
    if as_json:
        print_json({"doctor": [finding.as_json() for finding in findings]})
        return 1 if problems else 0
    for finding in findings:
        say(f"{mark(finding.verdict)} {finding.about:<10} {finding.what}")
        if finding.do:
            shown = command(finding.do) if "rappd " in finding.do.split("=")[-1][:12] else finding.do
            say(f"             {arrow()} {shown}")
    say(_sum(problems, notes))
    return 1 if problems else 0


def _sum(problems: int, notes: int) -> str:
    if not problems and not notes:
        return "All is well."
    parts = [
        f"{count} {word}{'' if count == 1 else 's'}"
        for count, word in ((problems, "problem"), (notes, "note"))
        if count
    ]
    return ", ".join(parts) + "."
