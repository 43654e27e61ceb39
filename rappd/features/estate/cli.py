"""``rappd estate``: what this home's owner made or belongs to, its doors, and its egg. Works with the daemon down."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import (
    arrow,
    command,
    dim,
    interactive,
    print_json,
    print_out,
    status_mark,
    strip_control,
)
from rappd.cli.formatting import count, tilde
from rappd.cli.home_client import HomeClient
from rappd.cli.progress import progress
from rappd.cli.tables import table
from rappd.daemon.home import Home
from rappd.features.eggs.cli_options import JSON, secrets_listed, whole
from rappd.features.eggs.hatching_cli import hatch as hatch_egg
from twins.byte_sizes import format_bytes


@click.group(cls=SuggestingGroup)
def estate() -> None:
    """List what is yours by its rappid, and pack it as one egg."""


@estate.command()
@JSON
def show(as_json: bool) -> None:
    """Show the estate, the links to it, and estates kept as data. Nothing is looked up."""
    found = HomeClient(Home.here(), reads=True).do("estate.show")
    if as_json:
        print_json(found)
        return
    _show_own(found)
    for row in found["kept"]:
        print_out(
            f"Kept as data: {row['key'][:16]}, {count(len(row['eggs']), 'egg')}, "
            f"{count(row['created'] + row['member'], 'entry').replace('entrys', 'entries')}"
        )
        if row["trouble"]:
            print_out(f"{status_mark('note')} {strip_control(row['trouble'])}")
        elif row["eggs"]:
            print_out(f"  {arrow()} {command('rappd estate hatch ' + row['key'][:16])}")


@estate.command()
@click.argument("rappid")
@click.option(
    "--member/--made",
    "member",
    default=None,
    help="You belong to it, or you made it; asked where neither is given.",
)
@JSON
def add(rappid: str, member: bool | None, as_json: bool) -> None:
    """Add RAPPID to the estate."""
    if member is None and interactive() and not as_json:
        member = not click.confirm("Did you make it? (No: you belong to it)", err=True)
    _changed(_ask("estate.add", rappid=rappid, part="member" if member else "created"), as_json)


@estate.command()
@click.argument("rappid")
@JSON
def remove(rappid: str, as_json: bool) -> None:
    """Take RAPPID, or the one that begins so, out of the estate. What it names stays where it is."""
    _changed(_ask("estate.remove", rappid=rappid), as_json)


@estate.command()
@JSON
def rebuild(as_json: bool) -> None:
    """Add every twin and neighborhood of this home that is missing; make a damaged file anew."""
    found = _ask("estate.rebuild")
    _changed(found, as_json)
    if found["aside"] and not as_json:
        print_out(f"  The damaged one lies in {tilde(found['aside'])}")


@estate.command()
@click.option("--twin", "twins", multiple=True, metavar="NAME", help="Only this twin; repeatable.")
@click.option("--no-twins", is_flag=True, help="The list alone, without any egg.")
@click.option(
    "-o", "--output", default="", metavar="FILE", help="Where to; without it, among the home's eggs."
)
@click.option("--exclude-memory", is_flag=True, help="Leave memories and conversations behind.")
@click.option(
    "--allow",
    multiple=True,
    metavar="ID",
    help="Let a likely secret travel, by the id printed with the warning.",
)
@click.option("--force", is_flag=True, help="Replace FILE.")
@JSON
def pack(
    twins: tuple[str, ...],
    no_twins: bool,
    output: str,
    exclude_memory: bool,
    allow: tuple[str, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Pack the estate with the eggs of its twins. Of a private tier only the pointer travels."""
    with secrets_listed(unless=as_json), nullcontext() if as_json else progress() as line:
        if line is not None:
            line("Packing the estate…")
        found = _ask(
            "estate.pack",
            twins=[] if no_twins else twins or None,
            into=whole(output),
            exclude_memory=exclude_memory,
            allow=allow,
            overwrite=force,
        )
    if as_json:
        print_json(found)
        return
    done = found["packed"]
    print_out(
        f"{status_mark('good')} The estate: {count(len(done['members']), 'egg')} in it, {format_bytes(done['size'])}, signed"
    )
    print_out(f"  {tilde(done['path'])}")
    if done["left_out"]:
        print_out(dim(f"  left out: {count(len(done['left_out']), 'file')}; --json names them"))


@estate.command()
@click.argument("kept")
@click.option("--yes", is_flag=True, help="Do not ask whether to trust.")
@JSON
@click.pass_context
def hatch(context: click.Context, kept: str, yes: bool, as_json: bool) -> Any:
    """Hatch the eggs of the estate KEPT, which lies here as data. An egg file: rappd egg hatch FILE."""
    return context.invoke(
        hatch_egg,
        file=Path(_ask("estate.lay", kept=kept)["path"]),
        overwrite="",
        no_memory=False,
        trust_signer=None,
        yes=yes,
        as_json=as_json,
    )


def _ask(name: str, **given: Any) -> dict[str, Any]:
    return HomeClient(Home.here(), timeout=3600).do(name, **given)


def _changed(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        print_out(f"{status_mark('good')} {strip_control(found['message'])}")


def _show_own(found: dict[str, Any]) -> None:
    estate = found["estate"]
    if estate is None:
        print_out("There is no estate yet.")
        print_out(f"  {arrow()} {command('rappd estate rebuild')}")
        return
    print_out(f"Owner: {strip_control(estate['owner']['rappid'] or 'nobody yet')}")
    doors = {one["rappid"]: one for one in found["doors"]}
    rows = [
        [
            strip_control(entry["rappid"]),
            "member" if part == "member" else "listed" if entry["via"] == "manual" else "made",
            entry["via"],
            strip_control(doors[entry["rappid"]].get("front", "")),
        ]
        for part in ("created", "member")
        for entry in estate[part]
    ]
    if rows:
        table(["RAPPID", "AS", "BY", "DOOR"], rows, shrink=0)
    else:
        print_out("It is empty.")
        print_out(f"  {arrow()} {command('rappd estate rebuild')}")
