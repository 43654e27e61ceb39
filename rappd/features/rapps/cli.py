"""``rappd rapps``: rapplications, an agent with a page of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import arrow, command, print_out, status_mark, strip_control
from rappd.cli.formatting import sentence
from rappd.cli.printer import Printer
from rappd.cli.tables import Table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home


@click.group(cls=SuggestingGroup)
def rapps() -> None:
    """List, install and uninstall rapplications."""


@rapps.command("list")
def list_(printer: Printer) -> None:
    """List the rapplications: shipped ones and installed ones."""
    found = ControlClient(Home.here()).do("rapps.list")["rapps"]
    printer.result({"rapps": found}, _show, found)


def _show(found: list[dict[str, Any]]) -> None:
    pages = any(rapp["installed"] and rapp["ui"] for rapp in found)
    Table(
        ("RAPP", "id"),
        ("WHAT IT DOES", lambda rapp: sentence(rapp["description"])),
        *([("PAGE", lambda rapp: rapp["ui"] if rapp["installed"] else "")] if pages else []),
        mark=lambda rapp: "good" if rapp["installed"] else None,
        shrink=1,
        prose=True,
        whole=(2,),
    )(found)
    if not any(rapp["installed"] for rapp in found):
        print_out(f"None is installed: {command('rappd rapps install RAPP')}")


@rapps.command()
def install(rapp: str, printer: Printer) -> None:
    """Install RAPP: one of the list, or a folder or zip."""
    name = str(Path(rapp).absolute()) if "/" in rapp or rapp.endswith(".zip") else rapp
    daemon = ControlClient(Home.here())
    found = daemon.do("rapps.install", id=name)
    rows = daemon.do("rapps.list")["rapps"]
    page = next((row["ui"] for row in rows if row["id"] == found["id"]), "") if found.get("ui") else ""
    _report({**found, "ui": page}, printer)


@rapps.command()
def uninstall(rapp: str, printer: Printer) -> None:
    """Delete its files; what it remembered stays."""
    _report(ControlClient(Home.here()).do("rapps.uninstall", id=rapp), printer)


def _report(found: dict[str, Any], printer: Printer) -> None:
    printer.result({"rapp": found}, _show_done, found)


def _show_done(found: dict[str, Any]) -> None:
    print_out(f"{status_mark('good')} {found['message']}")
    for code in found.get("reach", ()):
        print_out(f"  {strip_control(code['path'])}: {strip_control('; '.join(code['may']))}")
    if found.get("ui"):
        print_out(f"  {arrow()} {found['ui']}")
