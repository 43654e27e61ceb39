"""``rappd notices``: what happened while nobody looked: list, dismiss."""

from __future__ import annotations

import time
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import arrow, print_out, strip_control
from rappd.cli.formatting import ago, count
from rappd.cli.printer import Printer
from rappd.control_client import ControlClient
from rappd.daemon.home import Home

_DIGITS = 8


@click.group(cls=SuggestingGroup)
def notices() -> None:
    """List what happened while you were away, and dismiss it.

    The terminal tells each once, after an answer. A program of yours can be called at once: rappd config set notify.command.
    """


@notices.command("list")
def list_(printer: Printer) -> None:
    """List what waits for you, the latest first."""
    found = ControlClient(Home.here()).do("notices.list")
    printer.result(found, _show)


def _show(found: dict[str, Any]) -> None:
    if not found["notices"]:
        print_out("Nothing waits for you.")
    for one in found["notices"]:
        print_out(f"{one['key'][:_DIGITS]}  {strip_control(one['what'])} ({ago(time.time() - one['at'])})")
        if one["do"]:
            print_out(f"{' ' * _DIGITS}  {arrow()} {strip_control(one['do'])}")


@notices.command()
@click.option("--all", "everything", is_flag=True, help="All of them.")
def dismiss(*, key: str = "", everything: bool, printer: Printer) -> None:
    """Remove the notice KEY, or its first characters, from the list."""
    if bool(key) == everything:
        raise click.UsageError("Give a KEY of rappd notices list, or --all.")
    body = {"all": True} if everything else {"key": key}
    found = ControlClient(Home.here()).do("notices.dismiss", **body)
    printer.result(found, print_out, f"{count(int(found['dismissed']), 'notice')} dismissed.")
