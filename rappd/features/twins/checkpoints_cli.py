"""``rappd twins checkpoint``, ``checkpoints`` and ``rollback``: a twin as it was at a moment."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import click

from rappd.cli.command_parameters import Argument, cli_command
from rappd.cli.completion_names import twin_names
from rappd.cli.console import arrow, command, dim, print_err, print_out, status_mark, strip_control
from rappd.cli.formatting import count
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.cli.tables import Table
from rappd.daemon.home import Home
from rappd.errors import ConfirmationNeededError
from rappd.features.twins.client import Answer, in_path
from rappd.features.twins.text import handle
from twins.byte_sizes import format_bytes

if TYPE_CHECKING:
    pass

_Name = Annotated[str, Argument(shell_complete=twin_names)]
_SECONDS = 3600.0  # a twin may be large
_SHOWN = 3


@cli_command()
@click.option("--note", "text", default="", help="What to remember it by.")
def checkpoint(name: _Name, text: str, printer: Printer) -> None:
    """Keep a twin as it is now, to go back to. It may be running."""
    with progress(f"Packing {strip_control(name)}…"):
        found = HomeClient(Home.here(), timeout=_SECONDS).do(
            "checkpoints.make", twin=in_path(name), note=text
        )
    made = found["checkpoint"]
    printer.result({"checkpoint": made}, _show_made, found, made)


def _show_made(found: Answer, made: dict[str, Any]) -> None:
    what = f"{count(made['files'], 'file')}, {count(made['records'], 'record')}, {format_bytes(made['size'])}"
    print_out(f"{status_mark('good')} Checkpoint of {strip_control(found['name'])} saved: {what}")
    print_out(f"  {dim('to go back:')} {command(f'rappd twins rollback {_typed(found)}')}")


@cli_command()
def checkpoints(name: _Name, printer: Printer) -> None:
    """A twin's checkpoints, oldest first."""
    found = HomeClient(Home.here(), reads=True, timeout=_SECONDS).do("checkpoints.list", twin=in_path(name))
    printer.result({"checkpoints": found["checkpoints"]}, _show_list, found)


def _show_list(found: Answer) -> None:
    if found["checkpoints"]:
        _CHECKPOINTS(found["checkpoints"])
    else:
        print_out(f"{strip_control(found['name'])} has no checkpoint yet.")
        print_out(f"  {arrow()} {command(f'rappd twins checkpoint {_typed(found)}')}")


@cli_command()
@click.option("--yes", is_flag=True, help="Do not ask.")
def rollback(name: _Name, *, checkpoint: str = "", yes: bool, printer: Printer) -> int:
    """Bring a twin back to a CHECKPOINT, or the latest.

    Soul, agents, services, senses and memory are as they were, and files that came since go; what the twin
    is now becomes a checkpoint first. Its name, its .env and its packages stay. What was said stays in the
    record, too: its threads go on, though it may not remember.
    """
    with progress(f"Comparing {strip_control(name)}…"):
        meant = _roll_back(name, checkpoint, confirm=False)
    if not meant["restored"] and not meant["removed"]:
        printer.sentence(
            {"rollback": meant},
            f"{strip_control(meant['name'])} is as it was then already; nothing was touched.",
        )
        return 0
    if not yes and not _agreed(meant, printer):
        print_err("Nothing was touched.")
        return ConfirmationNeededError.exit_code
    with progress(f"Bringing {strip_control(name)} back…"):
        found = _roll_back(
            meant["key"], meant["checkpoint"]["id"], confirm=True
        )  # the very one that was shown
    printer.result({"rollback": found}, _show_rolled_back, found)
    return 0


def _show_rolled_back(found: Answer) -> None:
    changed = f"{count(len(found['restored']), 'file')} restored, {len(found['removed'])} removed"
    print_out(
        f"{status_mark('good')} {strip_control(found['name'])} is as it was on {_when(found['checkpoint']['at'])}: {changed}"
    )
    if found["before"]:
        undo = f"rappd twins rollback {_typed(found)} {found['before']['id']}"
        print_out(f"  {dim('to undo it:')} {command(undo)}")
    for sentence in found["notes"]:
        print_out(f"{status_mark('note')} {strip_control(sentence)}")


CHECKPOINT_VERBS = (checkpoint, checkpoints, rollback)


def _roll_back(name: str, checkpoint: str, *, confirm: bool) -> Answer:
    home = HomeClient(Home.here(), timeout=_SECONDS)
    return home.do("checkpoints.rollback", twin=in_path(name), checkpoint=checkpoint, confirm=confirm)


def _agreed(meant: Answer, printer: Printer) -> bool:
    """Shows what would change and asks. Raises ``ConfirmationNeededError`` where nobody can be asked."""
    who, when = strip_control(meant["name"]), _when(meant["checkpoint"]["at"])
    printer.result({"rollback": meant}, _show_changes, meant)
    question = f"Bring {who} back to {when}? What it is now is kept as a checkpoint."
    return printer.confirm(question, f"{who} would be brought back to {when}; nothing was touched.")


def _show_changes(meant: Answer) -> None:
    for verb, paths in (("restore", meant["restored"]), ("remove", meant["removed"])):
        more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
        print_out(f"  {verb:<8}{len(paths):>5}  {dim(strip_control(', '.join(paths[:_SHOWN])) + more)}")


def _typed(found: Answer) -> str:
    return handle(str(found["name"]), str(found["key"]))


def _when(at: str) -> str:
    """ "21 Nov 2026 09:40", in the time of this place."""
    moment = datetime.fromisoformat(at).astimezone()
    return f"{moment.day} {moment:%b %Y %H:%M}"


def _known(number: Any) -> str:
    return "?" if number is None else f"{number:,}"


_CHECKPOINTS = Table(
    ("CHECKPOINT", "id"),
    ("MADE", lambda row: _when(row["at"])),
    ("RECORDS", lambda row: _known(row["records"])),
    ("SIZE", lambda row: format_bytes(row["size"])),
    ("NOTE", "note"),
    shrink=4,
    prose=True,
    whole=(0,),
)
