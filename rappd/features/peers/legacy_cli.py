"""``rappd peers legacy`` and ``rappd peers hello``: machines that prove nothing, and a word to all that do."""

from __future__ import annotations

from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.command_parameters import cli_command
from rappd.cli.console import print_err, print_out, print_status, status_mark, strip_control
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.cli.tables import Table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import ConfirmationNeededError

_TALK = "HELP.brainstem"


@click.group(cls=SuggestingGroup)
def legacy() -> None:
    """An unencrypted listener for published brainstems: open, show, close."""


@legacy.command("open")
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@click.option(
    "--may", multiple=True, metavar="CAPABILITY", help="An agent they may use, as HELP.brainstem.Clock."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def open_(addresses: tuple[str, ...], may: tuple[str, ...], yes: bool, printer: Printer) -> int:
    """Let published brainstems at these addresses talk here, over plain http.

    They may chat, and use no agent but those named. Others on the network can read what is said.
    """
    daemon = ControlClient(Home.here())
    if not yes:
        daemon.do("legacy.show")  # nobody is asked for nothing
        who = ", ".join(strip_control(one) for one in addresses)
        question = f"Talk with {who} goes over plain http: others can read what is said. Open?"
        if not printer.confirm(question, f"Talk with {who} would go over plain http; nothing was opened."):
            print_err("Nothing was opened.")
            return ConfirmationNeededError.exit_code
    found = daemon.do("legacy.open", addresses=list(addresses), scopes=list(may))
    printer.result(found, _show, found["legacy"])
    return 0


@legacy.command()
def show(printer: Printer) -> None:
    """Show its state, addresses and allowed callers."""
    found = ControlClient(Home.here()).do("legacy.show")
    printer.result(found, _show, found["legacy"])


@legacy.command()
def close(printer: Printer) -> None:
    """Close it, for good."""
    found = ControlClient(Home.here()).do("legacy.close")
    printer.result(found, _show, found["legacy"])


@cli_command()
def hello(printer: Printer) -> int:
    """Say hello to every peer; shows who answers, and how fast."""
    with progress("Saying hello…"):
        found = ControlClient(Home.here()).do("peers.hello")
    rows = found["hello"]
    printer.result(found, _GREETED, rows)
    answered = sum(row["answered"] for row in rows)
    return 0 if answered == len(rows) else 7 if answered else 1


def _heard(row: dict[str, Any]) -> str:
    return f"{max(1, round(row['ms']))} ms" if row["answered"] else str(row["trouble"]).rstrip(".")


_GREETED = Table(
    ("PEER", "name"),
    ("ANSWER", _heard),
    ("AGENTS", lambda row: row["agents"] if row["answered"] else "-"),
    mark=lambda row: "good" if row["answered"] else "bad",
    none=("No machine is paired with this one.", ""),
    shrink=1,
)


def _show(row: dict[str, Any]) -> None:
    if not row["addresses"]:
        print_out("The legacy listener is closed.")
        return
    if row["open"]:
        print_out(
            f"{status_mark('good')} Open at {', '.join(row['listening'])}, plain http: others can read what is said."
        )
    else:
        print_status("note", f"It should be open, and is not: {row.get('trouble') or 'rappd is starting.'}")
    agents = [one.rpartition(".")[2] for one in row["scopes"] if one != _TALK]
    print_out(f"  For   {strip_control(', '.join(row['addresses']))}")
    used = f", and use {strip_control(', '.join(agents))}" if agents else ", and use no agent"
    print_out(f"  They  may chat{used}")
