"""``rappd webhooks``: addresses and folders whose content becomes a turn: list, add, remove."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import print_out, print_status, strip_control
from rappd.cli.printer import Printer
from rappd.control_client import ControlClient
from rappd.daemon.home import Home


@click.group(cls=SuggestingGroup)
def webhooks() -> None:
    """Let programs send something to be worked on, at an address that nobody can guess, or by a folder.

    What comes is text from elsewhere, with everyday rights and a memory of its own.
    """


@webhooks.command("list")
def list_(printer: Printer) -> None:
    """List them with their addresses."""
    printer.result(ControlClient(Home.here()).do("webhooks.list"), _show)


@webhooks.command()
@click.option("--twin", default="", metavar="TWIN", help="This twin gets it; without it, the brainstem.")
@click.option("--agent", default="", metavar="AGENT", help="This agent alone gets it, as its arguments.")
@click.option("--ask", default="", metavar="TEXT", help="What to do with it, in words.")
@click.option("--signed", is_flag=True, help="Refuse what is not signed with a secret (HMAC).")
@click.option(
    "--folder",
    default=None,
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="FOLDER",
    help="Files put there come in the same way.",
)
def add(
    name: str, twin: str, agent: str, ask: str, signed: bool, folder: Path | None, printer: Printer
) -> None:
    """Make an address called NAME, and print it."""
    found = ControlClient(Home.here()).do(
        "webhooks.add",
        name=name,
        twin=twin,
        agent=agent,
        ask=ask,
        signed=signed,
        folder=str(folder.resolve()) if folder else "",
    )
    printer.result(found, _show_added, found["webhook"])


@webhooks.command()
def remove(name: str, printer: Printer) -> None:
    """Remove NAME: its address is nobody's from now on."""
    found = ControlClient(Home.here()).do("webhooks.remove", webhook=name)
    printer.result(found, print_status, "good", f"{name} is removed.")


def _show(found: dict[str, Any]) -> None:
    if not found["webhooks"]:
        print_out("No webhooks. Make one: rappd webhooks add NAME")
    for one in found["webhooks"]:
        print_out(f"{one['name']}{', signed' if one['signed'] else ''}")
        print_out(f"  {one['address']}")
        if one["folder"]:
            print_out(f"  {strip_control(one['folder'])}")


def _show_added(hook: dict[str, Any]) -> None:
    print_out(hook["address"])
    if hook["folder"]:
        print_out(f"or a file in {strip_control(hook['folder'])}")
    if hook["secret"]:
        print_out(f"secret {hook['secret']}")
    print_status(
        "note",
        "Anyone who has this address can have something worked on here. To remove it:"
        f" rappd webhooks remove {strip_control(hook['name'])}",
    )
