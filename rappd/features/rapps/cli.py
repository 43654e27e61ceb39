"""``rappd rapps``: rapplications, an agent with a page of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import arrow, command, print_json, print_out, status_mark
from rappd.cli.formatting import sentence
from rappd.cli.tables import table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@click.group(cls=SuggestingGroup)
def rapps() -> None:
    """List, install and uninstall rapplications."""


@rapps.command("list")
@_JSON
def list_(as_json: bool) -> None:
    """Those that are shipped and those that are installed."""
    found = ControlClient(Home.here()).do("rapps.list")["rapps"]
    if as_json:
        print_json({"rapps": found})
        return
    rows = [
        [rapp["id"], sentence(rapp["description"]), rapp["ui"] if rapp["installed"] else ""] for rapp in found
    ]
    pages = any(row[2] for row in rows)
    table(
        ["RAPP", "WHAT IT DOES", *(["PAGE"] if pages else [])],
        [row if pages else row[:2] for row in rows],
        shrink=1,
        prose=True,
        whole=(2,),
        marks=["good" if rapp["installed"] else None for rapp in found],
    )
    if not any(rapp["installed"] for rapp in found):
        print_out(f"None is installed: {command('rappd rapps install RAPP')}")


@rapps.command()
@click.argument("rapp")
@_JSON
def install(rapp: str, as_json: bool) -> None:
    """Install RAPP: one of the list, or a folder or zip."""
    name = str(Path(rapp).absolute()) if "/" in rapp or rapp.endswith(".zip") else rapp
    daemon = ControlClient(Home.here())
    found = daemon.do("rapps.install", id=name)
    rows = daemon.do("rapps.list")["rapps"]
    page = next((row["ui"] for row in rows if row["id"] == found["id"]), "") if found.get("ui") else ""
    _report({**found, "ui": page}, as_json)


@rapps.command()
@click.argument("rapp")
@_JSON
def uninstall(rapp: str, as_json: bool) -> None:
    """Delete its files; what it remembered stays."""
    _report(ControlClient(Home.here()).do("rapps.uninstall", id=rapp), as_json)


def _report(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({"rapp": found})
        return
    print_out(f"{status_mark('good')} {found['message']}")
    if found.get("ui"):
        print_out(f"  {arrow()} {found['ui']}")
