"""``rappd twins``: list, show, new, chat, boot, stop, rename, fork, soul, lineage, archive, unarchive, purge."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import quote

import click

from agents.storage.text_file import SAVE_AS_UTF8, NotUtf8Error, decode
from rappd.cli.command_group import SuggestingGroup
from rappd.cli.command_parameters import Argument, Command
from rappd.cli.completion_names import twin_names
from rappd.cli.console import dim, print_out, status_mark, strip_control
from rappd.cli.printer import JSON, Printer
from rappd.cli.progress import progress
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import ConflictError, NotFoundError, UsageProblemError
from rappd.features.conversations.cli import ChatTarget, talk, talks
from rappd.features.twins.checkpoints_cli import CHECKPOINT_VERBS
from rappd.features.twins.client import Answer, client, in_path
from rappd.features.twins.states_cli import archive, purge, unarchive
from rappd.features.twins.text import (
    handle,
    show_archived,
    show_done,
    show_history,
    show_one,
    show_purged,
    show_tree,
    show_twins,
)

_Name = Annotated[str, Argument(shell_complete=twin_names)]

_LEFT_SHOWN = 10

_NAME = click.argument("name", shell_complete=twin_names)
_TEXT = click.argument("text", required=False, default="")


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


def _verb(action: str, about: str, *parameters: Callable[..., Any]) -> click.Command:
    """The command that does an action with a buddy."""

    def act(name: str, printer: Printer, text: str = "", kind: str = "") -> int:
        found = client().do("buddies.act", twin=in_path(name), action=action, text=text, kind=kind)
        return _tell(found, printer)

    command: Callable[..., Any] = act
    for each in (JSON, *reversed(parameters), _NAME):
        command = each(command)
    return click.command(action, cls=Command, help=about)(command)


@twins.command()
@_NAME
def status(name: str, printer: Printer) -> int:
    """Show how a buddy is: stage, mood, energy, experience."""
    return _tell(client().do("buddies.status", twin=in_path(name)), printer)


_BUDDY_VERBS = (
    _verb("feed", "Feed a buddy. An egg hatches with its first food."),
    _verb("pet", "Pet a buddy; its mood rises."),
    _verb("explore", "Let a buddy look around this home."),
    _verb("post", "Let a buddy post. It takes energy, and TEXT stays on this machine.", _TEXT),
    _verb("comment", "Let a buddy comment. It takes energy, and TEXT stays on this machine.", _TEXT),
    _verb("heartbeat", "Let a buddy live one frame more."),
    _verb(
        "remember",
        "Give a buddy something to remember. It keeps the latest hundred.",
        click.argument("text"),
        click.option("--kind", default="", help="What kind of memory: fact, preference …"),
    ),
    _verb(
        "recall",
        "Show what a buddy remembers, or the memories that have all the WORDS.",
        click.argument("text", required=False, default="", metavar="[WORDS]"),
    ),
)


def _tell(found: Answer, printer: Printer) -> int:
    """Says what came of it; returns the exit code: 9 when it was not in a state to do it."""
    printer.result({"twin": found}, _show_buddy, found)
    return 0 if found["done"] else ConflictError.exit_code


def _show_buddy(found: Answer) -> None:
    buddy = found["buddy"]
    print_out(f"{status_mark('good' if found['done'] else 'note')} {strip_control(found['message'])}")
    if buddy["stage"] != "egg":
        print_out(dim(f"  {buddy['stage']}, mood {buddy['mood']:g}, energy {buddy['energy']:g}, "
                f"experience {buddy['xp']:g}"))  # fmt: skip


@twins.command()
@_NAME
@click.option(
    "--edit", "file", metavar="FILE", default="", help="Put a text in force; - reads it from stdin."
)
@click.option("--reason", default="", help="Why it is edited; kept with the soul before.")
@click.option("--history", is_flag=True, help="The souls before.")
@click.option("--restore", "number", type=click.IntRange(1), metavar="N", help="Put soul N in force again.")
def soul(name: str, file: str, reason: str, history: bool, number: int | None, printer: Printer) -> None:
    """Print a twin's soul, or change it. The next turn goes by the new one."""
    if bool(file) + history + (number is not None) > 1:
        raise UsageProblemError(
            "Only one of --edit, --history and --restore goes at a time.", do="Take one of them."
        )
    if file:
        text = text_of(file)
        found = client().do("twins.edit_soul", twin=in_path(name), soul=text, reason=reason)
        printer.result({"twin": found}, show_done, found)
    elif number is not None:
        found = client().do("twins.restore_soul", twin=in_path(name), number=number)
        printer.result({"twin": found}, show_done, found)
    else:
        found = client(reads=True).do("twins.soul", twin=in_path(name))
        printer.result({"twin": found}, show_history if history else _show_soul, found)


def _show_soul(found: Answer) -> None:
    if sys.stdout.isatty():
        print_out(strip_control(found["soul"]).rstrip("\n"))
    else:
        sys.stdout.buffer.write(found["soul"].encode())  # the file as it is, to be edited and given back
        sys.stdout.buffer.flush()


def text_of(file: str) -> str:
    """The text of a file, or of stdin. Raises ``NotFoundError``, ``BadFileError``."""
    from twins.errors import BadFileError

    if file == "-":
        content = sys.stdin.buffer.read()
    else:
        try:
            content = Path(file).read_bytes()
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
            raise NotFoundError(f'No file "{file}".', do="- reads it from stdin") from error
    try:
        text = decode(content).text
    except NotUtf8Error as error:
        raise BadFileError(f"{'What came in' if file == '-' else file} {error}.", do=SAVE_AS_UTF8) from error
    if not text.strip():
        raise BadFileError("A soul cannot be empty; nothing was changed.", do="Write who the twin is.")
    return text


for verb in (archive, unarchive, purge, *CHECKPOINT_VERBS, *_BUDDY_VERBS):
    twins.add_command(verb)
