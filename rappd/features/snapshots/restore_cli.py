"""``rappd neighborhood plan`` and ``hatch``: a snapshot back to where it came from, or simulated here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from rappd.cli.command_parameters import cli_command
from rappd.cli.console import confirmed, print_out
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import JSON, Printer
from rappd.cli.progress import progress
from rappd.daemon.home import Home
from rappd.errors import UsageProblemError
from rappd.features.eggs.cli_options import egg_at
from rappd.features.snapshots.cli import followed, snapshot_at
from rappd.features.snapshots.members_cli import ask_for_tokens, variables_of_terminal
from rappd.features.snapshots.text import show_open_calls, show_restore_plan, show_restored, show_way_on
from twins.errors import TwinError

_PARTIAL = 7
_SECONDS = 3600.0
_FLAGS = {
    "overwrite_agents": "Replace the brainstem's agents and services.",
    "overwrite_core": "Replace the brainstem's soul.",
    "overwrite_data": "Replace the brainstem's memory.",
    "overwrite_global_state": "Replace the kept files of the home.",
    "overwrite_twins": "Replace files of twins of this machine.",
    "overwrite_peer_twins": "Replace twins of other machines.",
    "restore_archived": "Archived twins, too; they stay archived.",
}


def restore_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds the options of a restore; without any, only gaps are filled."""
    for name, text in reversed(_FLAGS.items()):
        function = click.option(f"--{name.replace('_', '-')}", is_flag=True, help=text)(function)
    return click.option(
        "--target",
        type=click.Choice(["in-place", "local-simulate"]),
        default="in-place",
        help="Other machines' twins go back to them, or into simulated/ here.",
    )(function)


@cli_command()
@click.argument("file")
@restore_options
@JSON
def plan(file: str, printer: Printer, **given: Any) -> None:
    """Show what bringing FILE back would do, here and elsewhere. Nothing is written."""
    show_plan_of(file, given, printer)


@cli_command()
@click.argument("file")
@restore_options
@click.option("--dry-run", is_flag=True, help="The same as plan.")
@click.option("--approved", default="", metavar="DIGEST", help="Only if the plan is still this one.")
@click.option("--yes", is_flag=True, help="Do not ask before other machines are written to.")
@JSON
def hatch(file: str, dry_run: bool, approved: str, yes: bool, printer: Printer, **given: Any) -> int:
    """Bring FILE back: this machine's part, and each other machine's to where it came from.

    What is there stays, unless an option says otherwise. What fails is named, and the rest goes on; a second
    run does only what is left.
    """
    if dry_run:
        show_plan_of(file, given, printer)
        return 0
    return hatch_snapshot(file, given, printer, approved=approved, yes=yes)


def show_plan_of(file: str, given: dict[str, Any], printer: Printer) -> None:
    """Plans and shows."""
    path = egg_at(snapshot_at(file)).absolute()
    found = _planned(HomeClient(Home.here(), reads=True, timeout=_SECONDS), printer, path, given)

    def show(plan: dict[str, Any]) -> None:
        show_restore_plan(plan, path=path)
        show_way_on(plan, file=file)

    printer.result(found, show, found["plan"])


def hatch_snapshot(
    file: str, given: dict[str, Any], printer: Printer, *, approved: str = "", yes: bool = False
) -> int:
    """Brings a snapshot back, after a yes where other machines would be written to. Returns the exit code."""
    from neighborhoods.snapshot.plan import writes_elsewhere

    path = egg_at(snapshot_at(file)).absolute()
    home = HomeClient(Home.here(), timeout=_SECONDS)
    if not approved:
        planned = _planned(home, printer, path, given)["plan"]
        if writes_elsewhere(planned) and not yes:
            if not printer.asks:
                raise TwinError(
                    "Other machines would be written to; nothing was.",
                    do="Look at the plan, then add --yes, or --approved with the digest that plan --json shows.",
                    code="unconfirmed",
                )
            show_restore_plan(planned, path=path)
            if not confirmed("Write to these machines?"):
                print_out("Nothing was written.")
                return 0
        approved = planned["digest"]
    with progress(f"Reading {path.name}…") as shown:

        def tell(work: dict[str, Any]) -> None:
            shown(f"Hatching {work['parts']['last']}…")

        found = followed(
            home,
            "snapshots.restore",
            tell,
            snapshot=str(path),
            options=given,
            approved=approved,
            variables=variables_of_terminal(home),
        )
    open_calls = found.pop("open_calls")
    printer.result(found, show_restored, found["hatched"], path)
    printer.note(show_open_calls, open_calls)
    return _PARTIAL if found["hatched"]["partial"] else 0


def _planned(home: HomeClient, printer: Printer, path: Path, given: dict[str, Any]) -> dict[str, Any]:
    lent = variables_of_terminal(home)
    ask_for_tokens(home, printer, lent)
    with progress(f"Reading {path.name}…"):
        return home.do("snapshots.plan", snapshot=str(path), options=given, variables=lent)


def egg_is_snapshot(path: Path) -> bool:
    """True when the egg at ``path`` is a neighborhood's: quickly, whatever its size."""
    from neighborhoods.snapshot.snapshot_contents import is_snapshot
    from twins.eggs.readers.inspect import look_at

    with look_at(path) as opened:
        return is_snapshot(opened)


def as_written(overwrite: str, *, no_memory: bool) -> dict[str, Any]:
    """The options of a restore for those of ``rappd egg``. Raises ``UsageProblemError``: they are other ones."""
    if overwrite or no_memory:
        raise UsageProblemError(
            "This egg is a whole neighborhood, with options of its own.", do="rappd neighborhood hatch --help"
        )
    return {"target": "in-place", **dict.fromkeys(_FLAGS, False)}
