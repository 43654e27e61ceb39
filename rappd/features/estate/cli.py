"""``rappd estate``: what this home's owner made or belongs to, its doors, and its egg. Works with the daemon down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import dim, print_out
from rappd.cli.formatting import count, tilde
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import JSON, Printer
from rappd.cli.progress import progress
from rappd.daemon.home import Home
from rappd.features.eggs.cli_options import ALLOW, EXCLUDE_MEMORY, FORCE, OUTPUT, secrets_listed
from rappd.features.eggs.hatching_cli import hatch as hatch_egg
from rappd.features.estate.text import show_estate


@click.group(cls=SuggestingGroup)
def estate() -> None:
    """List what is yours by its rappid, and pack it as one egg."""


@estate.command()
def show(printer: Printer) -> None:
    """Show the estate, the links to it, and estates kept as data. Nothing is looked up."""
    printer.result(HomeClient(Home.here(), reads=True).do("estate.show"), show_estate)


@estate.command()
@click.option(
    "--member/--made",
    "member",
    default=None,
    help="You belong to it, or you made it; asked where neither is given.",
)
def add(rappid: str, member: bool | None, printer: Printer) -> None:
    """Add RAPPID to the estate."""
    if member is None and printer.asks:
        member = not click.confirm("Did you make it? (No: you belong to it)", err=True)
    _change(printer, "estate.add", rappid=rappid, part="member" if member else "created")


@estate.command()
def remove(rappid: str, printer: Printer) -> None:
    """Take RAPPID, or the one that begins so, out of the estate. What it names stays where it is."""
    _change(printer, "estate.remove", rappid=rappid)


@estate.command()
def rebuild(printer: Printer) -> None:
    """Add every twin and neighborhood of this home that is missing; make a damaged file anew."""
    found = _change(printer, "estate.rebuild")
    if found["aside"]:
        printer.note(print_out, f"  The damaged one lies in {tilde(found['aside'])}")


@estate.command()
@click.option("--twin", "twins", multiple=True, metavar="NAME", help="Only this twin; repeatable.")
@click.option("--no-twins", is_flag=True, help="The list alone, without any egg.")
@OUTPUT
@EXCLUDE_MEMORY
@ALLOW
@FORCE
@JSON
def pack(twins: tuple[str, ...], no_twins: bool, printer: Printer, **how: Any) -> None:
    """Pack the estate with the eggs of its twins. Of a private tier only the pointer travels."""
    with secrets_listed(printer), progress("Packing the estate…"):
        found = _ask("estate.pack", twins=[] if no_twins else twins or None, **how)
    printer.result(found, _show_packed, found["packed"])


def _show_packed(done: dict[str, Any]) -> None:
    from rappd.features.eggs.text import show_file_packed

    show_file_packed("The estate", done, "signed", f"{count(len(done['members']), 'egg')} in it")
    if done["left_out"]:
        print_out(dim(f"  left out: {count(len(done['left_out']), 'file')}; --json names them"))


@estate.command()
@click.option("--yes", is_flag=True, help="Do not ask whether to trust.")
def hatch(kept: str, yes: bool, printer: Printer) -> Any:
    """Hatch the eggs of the estate KEPT, which lies here as data. An egg file: rappd egg hatch FILE."""
    given = {"overwrite": "", "no_memory": False, "trust_signer": None, "yes": yes, "printer": printer}
    return click.get_current_context().invoke(
        hatch_egg, file=Path(_ask("estate.lay", kept=kept)["path"]), **given
    )


def _ask(name: str, **given: Any) -> dict[str, Any]:
    return HomeClient(Home.here(), timeout=3600).do(name, **given)


def _change(printer: Printer, name: str, **given: Any) -> dict[str, Any]:
    found = _ask(name, **given)
    printer.sentence(found, found["message"])
    return found
