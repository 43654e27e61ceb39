"""``rappd neighborhood snapshot``, ``snapshots``, ``drill``, ``diff`` and ``schedule``. They work with the daemon down."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from envelopes.errors import ReportableError
from neighborhoods.snapshot.snapshot_folder import SnapshotFolder
from rappd.cli.command_parameters import cli_command
from rappd.cli.console import print_status
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.features.eggs.cli_options import whole
from rappd.features.snapshots.members_cli import ask_for_tokens, variables_of_terminal
from rappd.features.snapshots.progress_bars import machine_bars
from rappd.features.snapshots.text import show_drill, show_schedule, show_snapshot, show_snapshots

_PARTIAL = 7
_SECONDS = 3600.0
"""Work may say nothing for so long."""


@cli_command()
@click.option("--out", "-o", default="", metavar="FILE", help="Where to; without it, among the home's eggs.")
@click.option("--name", default="", help="What to call it; without it, the date and time.")
@click.option("--only", multiple=True, metavar="MACHINE", help="Of the other machines, only this one.")
@click.option("--include-archived", is_flag=True, help="Archived twins, too.")
@click.option("--no-twins", is_flag=True, help="List the twins and leave their files behind.")
@click.option("--awake-only", is_flag=True, help="Leave out twins of this machine that are stopped.")
@click.option("--max-twin-bytes", type=click.IntRange(min=0), metavar="BYTES", help="Leave out larger twins.")
@click.option("--allow", multiple=True, metavar="ID", help="Let a likely secret travel, by its id.")
@click.option("--force", is_flag=True, help="Replace FILE.")
@click.option("--no-drill", is_flag=True, help="Do not try whether it can be restored.")
def snapshot(
    out: str,
    name: str,
    only: tuple[str, ...],
    include_archived: bool,
    no_twins: bool,
    awake_only: bool,
    max_twin_bytes: int | None,
    allow: tuple[str, ...],
    force: bool,
    no_drill: bool,
    printer: Printer,
) -> int:
    """Back up all machines, this one and the others, into one file: a snapshot.

    Cut off, it goes on where it stopped. Keys and .env files stay behind. With --json, one event a line.
    """
    home = HomeClient(Home.here(), timeout=_SECONDS)
    lent = variables_of_terminal(home)
    ask_for_tokens(home, printer, lent, only)
    with machine_bars(printer) as tell:
        done = followed(
            home,
            "snapshots.take",
            tell,
            name=name,
            options={
                "include_archived": include_archived,
                "include_twin_workspaces": not no_twins,
                "include_stopped_twins": not awake_only,
                "max_twin_bytes": max_twin_bytes,
            },
            only=only,
            into=whole(out),
            allow=allow,
            overwrite=force,
            drill=not no_drill,
            variables=lent,
        )
    no_way = done.pop("no_way")
    printer.event({"event": "done", **done}, show_snapshot, done)
    for machine, why in no_way.items():
        printer.note(print_status, "note", f"{machine} is not in it: {why}")
    if done["partial"]:
        return _PARTIAL
    drilled = done["snapshot"]["drill"]
    return 1 if done["untried"] or (drilled is not None and drilled["problem"]) else 0


@cli_command()
def snapshots(printer: Printer) -> None:
    """List the backups of all machines (snapshots), the newest first, and whether each can be restored."""
    printer.result(HomeClient(Home.here(), reads=True).do("snapshots.list"), show_snapshots)


@cli_command()
def drill(snapshot: str, printer: Printer) -> int:
    """Hatch SNAPSHOT into a scratch folder, compare every file, and throw it away."""
    home = HomeClient(Home.here(), timeout=_SECONDS)
    found = followed(home, "snapshots.drill", lambda work: None, snapshot=str(snapshot_at(snapshot)))
    printer.result(found, show_drill, found["snapshot"])
    return 1 if found["snapshot"]["drill"]["problem"] else 0


@cli_command()
def diff(before: str, after: str, printer: Printer) -> None:
    """Show the differences between two snapshots, by name or file."""
    from neighborhoods.snapshot.diff import compare_snapshots
    from rappd.features.eggs.text import show_differences

    found = compare_snapshots(snapshot_at(before), snapshot_at(after))
    printer.result(found.as_json(), show_differences, found)


@cli_command()
@click.argument("rule", nargs=-1, metavar="[RULE|off]")
@click.option(
    "--keep", type=click.IntRange(min=1), metavar="N", help="Keep the last N whole ones; 7 without it."
)
@click.option(
    "--zone", default=None, metavar="ZONE", help="Time zone, like Europe/Berlin; without it, this machine's."
)
def schedule(rule: tuple[str, ...], keep: int | None, zone: str | None, printer: Printer) -> None:
    """Back up all machines (a snapshot) at set times: daily 03:00, weekly sunday 03:00, every 6 hours; off ends it.

    What was missed while rappd was stopped runs once at its next start. After each whole one, older ones that
    the schedule made are removed, but for the last N and the last restorable one. Without RULE, show it.
    """
    text = " ".join(rule)
    if not text and keep is None and zone is None:
        found = HomeClient(Home.here(), reads=True).do("schedule.show")
    elif text.casefold() == "off":
        found = ControlClient(Home.here()).do("schedule.switch_off")
    else:  # what is not said stays as it is
        daemon = ControlClient(Home.here())
        present = daemon.do("schedule.show")["schedule"] or {}
        zone = present.get("zone") if zone is None else zone
        schedule = {
            "rule": text or present.get("rule", ""),
            "keep": keep or present.get("keep"),
            "zone": zone,
        }
        found = daemon.do("schedule.set", **schedule)
    printer.result(found, show_schedule, found["schedule"])


def followed(
    home: HomeClient, operation: str, tell: Callable[[dict[str, Any]], object], /, **given: Any
) -> dict[str, Any]:
    """The answer of work that takes a while; ``tell`` gets its states. Ctrl-C cancels it, where that is possible."""
    work = uuid.uuid4().hex
    try:
        return home.follow(operation, lambda event: tell(event["work"]), work=work, **given)
    except KeyboardInterrupt:
        try:
            home.do("snapshots.cancel", work=work)
        except ReportableError as problem:
            print_status("note", str(problem), problem.do, stream=sys.stderr)
        raise


def snapshot_at(text: str) -> Path:
    """The file that a path, or a snapshot's name, means. Raises ``no_such_snapshot``."""
    return SnapshotFolder(Home.here().root).find(text)
