"""``rappd peers legacy`` and ``rappd peers hello``: machines that prove nothing, and a word to all that do."""

from __future__ import annotations

from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import (
    interactive,
    print_err,
    print_json,
    print_out,
    print_status,
    status_mark,
    strip_control,
)
from rappd.cli.progress import progress
from rappd.cli.tables import table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import ConfirmationNeededError

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
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
@_JSON
def open_(addresses: tuple[str, ...], may: tuple[str, ...], yes: bool, as_json: bool) -> int:
    """Let published brainstems at these addresses talk here, over plain http.

    They may chat, and use no agent but those named. Others on the network can read what is said.
    """
    daemon = ControlClient(Home.here())
    if not yes:
        daemon.do("legacy.show")  # nobody is asked for nothing
        who = ", ".join(strip_control(one) for one in addresses)
        if as_json or not interactive():
            raise ConfirmationNeededError(
                f"Talk with {who} would go over plain http; nothing was opened.", do="Add --yes."
            )
        question = f"Talk with {who} goes over plain http: others can read what is said. Open?"
        if not click.confirm(question, default=False, err=True):
            print_err("Nothing was opened.")
            return ConfirmationNeededError.exit_code
    found = daemon.do("legacy.open", addresses=list(addresses), scopes=list(may))
    _show(found, as_json)
    return 0


@legacy.command()
@_JSON
def show(as_json: bool) -> None:
    """Show its state, addresses and allowed callers."""
    _show(ControlClient(Home.here()).do("legacy.show"), as_json)


@legacy.command()
@_JSON
def close(as_json: bool) -> None:
    """Close it, for good."""
    _show(ControlClient(Home.here()).do("legacy.close"), as_json)


@click.command()
@_JSON
def hello(as_json: bool) -> int:
    """Say hello to every peer; shows who answers, and how fast."""
    with progress() as line:
        line("Saying hello…")
        found = ControlClient(Home.here()).do("peers.hello")
    rows = found["hello"]
    if as_json:
        print_json(found)
    elif not rows:
        print_out("No machine is paired with this one.")
    else:
        table(
            ["PEER", "ANSWER", "AGENTS"],
            [[row["name"], _heard(row), str(row["agents"]) if row["answered"] else "-"] for row in rows],
            shrink=1,
            marks=["good" if row["answered"] else "bad" for row in rows],
        )
    answered = sum(row["answered"] for row in rows)
    return 0 if answered == len(rows) else 7 if answered else 1


def _heard(row: dict[str, Any]) -> str:
    return f"{max(1, round(row['ms']))} ms" if row["answered"] else str(row["trouble"]).rstrip(".")


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
        return
    row = found["legacy"]
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
