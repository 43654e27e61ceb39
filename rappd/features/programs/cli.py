"""``rappd programs``: programs of others that ask this machine: list."""

from __future__ import annotations

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer
from rappd.daemon.home import Home
from rappd.features.programs.text import listing


@click.group(cls=SuggestingGroup)
def programs() -> None:
    """List which programs of others ask this machine, over which protocol.

    A protocol is switched off with rappd config set programs.openai off; keys are made with rappd token issue.
    """


@programs.command("list")
def list_(printer: Printer) -> None:
    """List programs that connected, the latest first, and the protocols that are switched off."""
    found = HomeClient(Home.here(), reads=True).do("programs.list")
    printer.result(found, listing, found)
