"""``rappd twins feed``, ``pet``, ``explore`` and the rest: what one does with a buddy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from rappd.cli.command_parameters import cli_command
from rappd.cli.completion_names import twin_names
from rappd.cli.console import dim, print_out, status_mark, strip_control
from rappd.cli.printer import JSON, Printer
from rappd.errors import ConflictError
from rappd.features.twins.client import Answer, client, in_path

_NAME = click.argument("name", shell_complete=twin_names)
_TEXT = click.argument("text", required=False, default="")


def _verb(action: str, about: str, *parameters: Callable[..., Any]) -> click.Command:
    """The command that does an action with a buddy."""

    def act(name: str, printer: Printer, text: str = "", kind: str = "") -> int:
        found = client().do("buddies.act", twin=in_path(name), action=action, text=text, kind=kind)
        return _tell(found, printer)

    command: Callable[..., Any] = act
    for each in (JSON, *reversed(parameters), _NAME):
        command = each(command)
    return click.command(action, help=about)(command)


@cli_command()
@_NAME
def status(name: str, printer: Printer) -> int:
    """Show how a buddy is: stage, mood, energy, experience."""
    return _tell(client().do("buddies.status", twin=in_path(name)), printer)


BUDDY_VERBS = (
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
    status,
)


def _tell(found: Answer, printer: Printer) -> int:
    """Says what came of it; returns the exit code: 9 when it was not in a state to do it."""
    printer.result({"twin": found}, _show, found)
    return 0 if found["done"] else ConflictError.exit_code


def _show(found: Answer) -> None:
    buddy = found["buddy"]
    print_out(f"{status_mark('good' if found['done'] else 'note')} {strip_control(found['message'])}")
    if buddy["stage"] != "egg":
        print_out(dim(f"  {buddy['stage']}, mood {buddy['mood']:g}, energy {buddy['energy']:g}, "
                f"experience {buddy['xp']:g}"))  # fmt: skip
