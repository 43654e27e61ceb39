"""``rappd neighborhood``: all machines together, and shared places: ``list``, ``create``, ``show``, ``invite`` and so on."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.completion_names import peer_names
from rappd.cli.console import arrow, command, dim, print_out, status_mark, strip_control
from rappd.cli.formatting import tilde
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import JSON, Printer
from rappd.cli.tables import Table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.features.eggs.cli_options import ALLOW, FORCE, OUTPUT, egg_at, secrets_listed
from rappd.features.snapshots.cli import diff, drill, schedule, snapshot, snapshots
from rappd.features.snapshots.members_cli import members, probe, send, token
from rappd.features.snapshots.restore_cli import hatch, plan

_DAYS = 14
_PUBLISHED = {"neighborhood": "paired members may call it", "public": "every paired machine may call it"}


@click.group(cls=SuggestingGroup)
def neighborhood() -> None:
    """Back up all your machines into one file and bring them back; share places with others."""


for _one in (members, probe, token, snapshot, snapshots, schedule, drill, diff, plan, hatch, send):
    neighborhood.add_command(_one)


@neighborhood.command("list")
def list_(printer: Printer) -> None:
    """List the shared places (neighborhoods) that you joined, and those that lie here as data."""
    found = HomeClient(Home.here(), reads=True).do("neighborhoods.list")
    printer.result(found, _show_list)


@neighborhood.command()
@click.option("--about", default="", help="A sentence about it.")
def create(name: str, about: str, printer: Printer) -> None:
    """Create the shared place (neighborhood) NAME; you are its first member."""
    found = HomeClient(Home.here()).do("neighborhoods.create", name=name, about=about)
    printer.sentence(found, found["message"], then=f"rappd neighborhood invite {shlex.quote(name)}")


@neighborhood.command()
def show(name: str, printer: Printer) -> None:
    """Show one neighborhood: members with presence, what they share, what you published."""
    found = HomeClient(Home.here(), reads=True).do("neighborhoods.show", neighborhood=name)
    printer.result(found, _show_place, found["neighborhood"])


@neighborhood.command()
@click.option(
    "--peer", default="", shell_complete=peer_names, help="Count this paired machine among the members."
)
@click.option("--days", type=int, default=_DAYS, show_default=True, help="Days that it is good for.")
@OUTPUT
def invite(name: str, peer: str, days: int, into: str, printer: Printer) -> None:
    """Write an invite to NAME into a file. It gives no rights; a machine has to be paired as well."""
    home = HomeClient(Home.here())
    found = home.do("neighborhoods.invite", neighborhood=name, peer=peer, days=days, into=into)
    then = f"rappd egg send {shlex.join((found['invite']['path'], peer))}" if peer else ""
    printer.sentence(found, found["message"], then=then)


@neighborhood.command()
def join(file: str, printer: Printer) -> None:
    """Join by the invite or egg FILE, or a neighborhood that lies here, by its name."""
    path = Path(file).expanduser()
    given = str(egg_at(path).absolute()) if path.is_file() else ""
    body = {"path": given} if given else {"name": file}
    found = HomeClient(Home.here()).do("neighborhoods.join", **body)
    then = f"rappd neighborhood show {shlex.quote(found['neighborhood']['name'])}"
    printer.sentence(found, found["message"], then=then)


@neighborhood.command()
def leave(name: str, printer: Printer) -> None:
    """Leave NAME. What you published in it ends at once; its files are set aside."""
    found = HomeClient(Home.here()).do("neighborhoods.leave", neighborhood=name)
    printer.sentence(found, found["message"])
    printer.note(print_out, f"  Its files lie in {tilde(found['left']['aside'])}")


@neighborhood.command()
@click.option(
    "--public",
    "scope",
    flag_value="public",
    help="Every paired machine may call it; strangers read its name.",
)
@click.option("--personal", "scope", flag_value="personal", help="For nobody but you again.")
def publish(name: str, agent: str, scope: str | None, printer: Printer) -> None:
    """Let the paired members of NAME call AGENT of this machine."""
    daemon = ControlClient(Home.here())
    found = daemon.do("neighborhoods.publish", neighborhood=name, agent=agent, scope=scope)
    printer.sentence(found, found["message"])


@neighborhood.command()
@click.argument("name")
@OUTPUT
@ALLOW
@FORCE
@JSON
def pack(name: str, printer: Printer, **how: Any) -> None:
    """Pack the neighborhood NAME with all that its members share; rappd egg hatch brings it back."""
    with secrets_listed(printer):
        found = HomeClient(Home.here(), timeout=3600).do("neighborhoods.pack", neighborhood=name, **how)
    printer.result(found, _show_packed, found["packed"])


_PLACES = Table(
    ("NEIGHBORHOOD", lambda row: strip_control(row["name"])),
    ("KEY", lambda row: row["key"][:12]),
    ("JOINED", lambda row: "yes" if row["joined"] else "no"),
    ("MEMBERS", "count"),
    ("ABOUT", lambda row: strip_control(row["about"])),
    shrink=4,
)
_MEMBERS = Table(
    ("MEMBER", lambda row: strip_control(row["name"] or row["rappid"] or "somebody")),
    ("ROLE", lambda row: strip_control(row["role"])),
    ("PAIRED AS", lambda row: "this machine" if row["self"] else strip_control(row["peer"]) or "not paired"),
    ("PRESENCE", lambda row: strip_control(row["presence"]) or "-"),
    shrink=0,
)


def _show_list(found: dict[str, Any]) -> None:
    if found["neighborhoods"]:
        _PLACES(found["neighborhoods"])
    else:
        print_out("No neighborhood is here yet.")
        print_out(f"  {arrow()} {command('rappd neighborhood create NAME')}, or join by an invite")
    for one in found["unreadable"]:
        print_out(f"{status_mark('bad')} {one['key'][:12]}: {strip_control(one['trouble'])}")
    if found["trouble"]:
        print_out(f"{status_mark('bad')} {strip_control(found['trouble'])}")


def _show_place(one: dict[str, Any]) -> None:
    print_out(strip_control(f"{one['name']}, {one['about']}" if one["about"] else one["name"]))
    print_out(dim(f"  {strip_control(one['rappid'])}"))
    if not one["joined"]:
        name = shlex.quote(one["name"])
        print_out(f"{status_mark('note')} You are no member.")
        print_out(f"  {arrow()} {command(f'rappd neighborhood join {name}')}")
    if one["members"]:
        _MEMBERS(one["members"])
    for agent, scope in one["published"].items():
        print_out(f"  published: {strip_control(agent)}, {scope}: {_PUBLISHED[scope]}")
    for path in one["agents"]:
        print_out(f"  shared: {strip_control(path)}")
    if one["agents"]:
        print_out("  Nothing shared runs by itself. Read it, then:")
        file = shlex.quote(f"{one['folder']}/{one['agents'][0]}")
        print_out(f"  {arrow()} {command(f'rappd agents add {file}')}")


def _show_packed(done: dict[str, Any]) -> None:
    from rappd.features.eggs.text import show_file_packed

    show_file_packed(done["name"], done, "signed")
    for one in done["left_out"]:
        print_out(dim(f"  left out: {strip_control(one['path'])} {one['why']}"))
