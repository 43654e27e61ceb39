"""``rappd twins``: list, show, new, chat, boot, stop, rename, fork, soul, lineage, archive, unarchive, purge."""

from __future__ import annotations

from typing import Annotated, Any
from urllib.parse import quote

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.command_parameters import Argument
from rappd.cli.completion_names import twin_names
from rappd.cli.console import dim, print_out, strip_control
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import ConflictError
from rappd.features.conversations.cli import ChatTarget, talk, talks
from rappd.features.twins.buddies_cli import BUDDY_VERBS
from rappd.features.twins.checkpoints_cli import CHECKPOINT_VERBS
from rappd.features.twins.client import Answer, client, in_path
from rappd.features.twins.souls_cli import soul, text_of
from rappd.features.twins.states_cli import archive, purge, unarchive
from rappd.features.twins.text import (
    handle,
    show_archived,
    show_done,
    show_one,
    show_purged,
    show_tree,
    show_twins,
)

_Name = Annotated[str, Argument(shell_complete=twin_names)]

_LEFT_SHOWN = 10


@click.group(cls=SuggestingGroup)
def twins() -> None:
    """Manage twins: chat, boot, fork, archive.

    NAME is a twin's name, or the first digits of its rappid.
    """


@twins.command("list")
@click.option("--archived", "state", flag_value="archived", help="Those set aside.")
@click.option("--purged", "state", flag_value="purged", help="Those that are gone.")
def list_(state: str | None, printer: Printer) -> None:
    """List every twin, and each folder that should be one and cannot be read."""
    found = client(reads=True).do("twins.list", state=state)
    if state is None:
        printer.result(found, show_twins)
    else:
        printer.result(found, show_archived if state == "archived" else show_purged, found[state])


@twins.command()
def show(name: _Name, printer: Printer) -> None:
    """One twin: who it is, what it has, where it lies."""
    found = client(reads=True).do("twins.show", twin=in_path(name))
    printer.result(found, show_one, found["twin"])


@twins.command()
@click.option(
    "--kind",
    default="",
    help="personal (as without it), project, place, buddy, memorial (of somebody who died) …",
)
@click.option("--soul", "soul_file", metavar="FILE", default="", help="Its soul; - reads it from stdin.")
@click.option("--force", is_flag=True, help="Also where a twin of that name lives here.")
def new(name: str, kind: str, soul_file: str, force: bool, printer: Printer) -> None:
    """Create a twin."""
    text = text_of(soul_file) if soul_file else ""
    found = client().do("twins.new", name=name, kind=kind, soul=text, unique=not force)
    printer.result({"twin": found}, show_done, found, "rappd twins chat")


@twins.command("chat")
@click.argument("name", shell_complete=twin_names)
@talks
def chat(name: str, **given: Any) -> None:
    """Talk to a twin. Without TEXT, a conversation."""
    daemon = ControlClient(Home.here(), timeout=600)
    twin = daemon.do("twins.show", twin=in_path(name))["twin"]
    typed = handle(twin["name"], twin["key"])
    if twin["state"] == "archived":
        raise ConflictError(f"{twin['name']} is archived.", do=f"rappd twins unarchive {typed}")
    path = f"/twins/{quote(twin['key'])}"

    def agents() -> list[str]:
        cards = [
            card for file in daemon.do("agents.list", twin=twin["key"])["files"] for card in file["cards"]
        ]
        return sorted(card["name"] for card in cards if card["name"] and not card["shadowed_by"])

    partner = ChatTarget(twin["name"], path, f"rappd twins chat {typed}", agents)
    talk(daemon, partner, daemon.get("/operator/status"), **given)


@twins.command()
def boot(name: _Name, printer: Printer) -> None:
    """Start a twin on a port of its own. It starts with rappd, too, until it is stopped."""
    found = ControlClient(Home.here()).do("twins.boot", twin=in_path(name))
    printer.result({"twin": found}, show_done, found)


@twins.command()
def stop(name: _Name, printer: Printer) -> None:
    """Stop a twin. Its port closes, what it runs ends, nothing is lost."""
    found = client().do("twins.stop", twin=in_path(name))
    printer.result({"twin": found}, show_done, found)


@twins.command()
@click.argument("new_name", metavar="NEW")
def rename(name: _Name, new_name: str, printer: Printer) -> None:
    """Call a twin something else; who it is stays."""
    found = client().do("twins.rename", twin=in_path(name), name=new_name)
    printer.result({"twin": found}, show_done, found)


@twins.command()
@click.option("--name", "new_name", default="", help="What the fork is called.")
def fork(name: _Name, new_name: str, printer: Printer) -> None:
    """A new twin that begins as a copy and goes its own way."""
    with progress(f"Forking {name}…"):
        found = client().do("twins.fork", twin=in_path(name), name=new_name)
    printer.result({"twin": found}, _show_fork, found)


def _show_fork(found: Answer) -> None:
    show_done(found, "rappd twins chat")
    left = [one for one in found["left"] if one["why"] != "its own"]  # the fork has such papers of its own
    for one in left[:_LEFT_SHOWN]:
        print_out(dim(f"  left behind: {strip_control(one['path'])}, {one['why']}"))
    if len(left) > _LEFT_SHOWN:
        print_out(dim(f"  and {len(left) - _LEFT_SHOWN} more"))


@twins.command()
@click.argument("name", required=False, default="", shell_complete=twin_names)
def lineage(name: str, printer: Printer) -> None:
    """Show the lineage of one twin, or of every twin."""
    found = client(reads=True).do("twins.lineage", twin=name)
    printer.result(found, show_tree, found["lineage"])


for verb in (soul, archive, unarchive, purge, *CHECKPOINT_VERBS, *BUDDY_VERBS):
    twins.add_command(verb)
