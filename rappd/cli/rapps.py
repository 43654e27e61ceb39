"""``rappd rapps``: rapplications, an agent with a page of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rappd.cli.daemon import Daemon
from rappd.cli.screen import mark, print_json, say, table
from rappd.home import Home

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@click.group()
def rapps() -> None:
    """List, install and uninstall rapplications."""


@rapps.command("list")
@_JSON
def list_(as_json: bool) -> None:
    """Those that are shipped and those that are installed."""
    found = Daemon(Home.here()).get("/rapps")["rapps"]
    if as_json:
        print_json({"rapps": found})
        return
    rows = [
        [
            mark("good") if rapp["installed"] else " ",
            rapp["id"],
            rapp["description"],
            rapp["ui"] if rapp["installed"] else "",
        ]
        for rapp in found
    ]
    table(["", "RAPP", "WHAT IT DOES", "PAGE"], rows, shrink=2)


@rapps.command()
@click.argument("rapp")
@_JSON
def install(rapp: str, as_json: bool) -> None:
    """Install RAPP: one of the list, or a folder or zip."""
    path = Path(rapp)
    name = str(path.absolute()) if path.exists() and ("/" in rapp or rapp.endswith(".zip")) else rapp
    _report(Daemon(Home.here()).post("/rapps/install", {"id": name}), as_json)


@rapps.command()
@click.argument("rapp")
@_JSON
def uninstall(rapp: str, as_json: bool) -> None:
    """Delete its files; what it remembered stays."""
    _report(Daemon(Home.here()).post("/rapps/uninstall", {"id": rapp}), as_json)


def _report(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({"rapp": found})
        return
    say(f"{mark('good')} {found['message']}")
    if found.get("ui"):
        say(f"  {found['ui']}")
