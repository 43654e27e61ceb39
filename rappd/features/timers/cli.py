"""``rappd timers``: reminders and what is asked at set times: list, add, cancel, pause, resume, move, run."""

from __future__ import annotations

from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import print_out, strip_control
from rappd.cli.printer import Printer
from rappd.cli.tables import table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home


@click.group(cls=SuggestingGroup)
def timers() -> None:
    """Be reminded, and have things asked at set times.

    Say it in a conversation, too: "remind me tomorrow at 9 to call mum", "every weekday at seven tell me the weather".
    """


@timers.command("list")
def list_(printer: Printer) -> None:
    """List all timers, the next one first."""
    printer.result(ControlClient(Home.here()).do("timers.list"), _show)


@timers.command()
@click.argument("sentence", nargs=-1, required=True)
@click.option("--at", "when", default="", metavar="WHEN", help="When, in words: SENTENCE is only what, then.")
@click.option("--ask", is_flag=True, help="Ask it then, in place of a reminder.")
@click.option(
    "--zone", default="", metavar="ZONE", help="Time zone, like Europe/Berlin; without it, this machine's."
)
@click.option("--twin", default="", metavar="TWIN", help="Ask this twin.")
def add(sentence: tuple[str, ...], when: str, ask: bool, zone: str, twin: str, printer: Printer) -> None:
    """Set a timer: rappd timers add remind me tomorrow at 9 to call mum."""
    found = ControlClient(Home.here()).do(
        "timers.add", text=" ".join(sentence), at=when, ask=ask, zone=zone, twin=twin
    )
    printer.result(found, _print_text, found["said"])


@timers.command()
def cancel(timer: str, printer: Printer) -> None:
    """Remove TIMER, by its id of rappd timers list."""
    _change(printer, "timers.cancel", "Cancelled", timer=timer)


@timers.command()
def pause(timer: str, printer: Printer) -> None:
    """Perform TIMER no more until it is resumed."""
    _change(printer, "timers.pause", "Paused", timer=timer)


@timers.command()
def resume(timer: str, printer: Printer) -> None:
    """Perform TIMER again from now on."""
    _change(printer, "timers.resume", "Goes on", timer=timer)


@timers.command()
@click.argument("when", nargs=-1, required=True)
def move(timer: str, when: tuple[str, ...], printer: Printer) -> None:
    """Move TIMER to another time: rappd timers move 3f9c tomorrow at ten."""
    _change(printer, "timers.move", "Moved", timer=timer, to=" ".join(when))


@timers.command()
def run(timer: str, printer: Printer) -> None:
    """Perform TIMER now; a repetition goes on as it was."""
    _change(printer, "timers.run", "Runs now", timer=timer)


def _change(printer: Printer, operation: str, message: str, **arguments: Any) -> None:
    found = ControlClient(Home.here()).do(operation, **arguments)
    one = found["timer"]
    printer.result(found, _print_text, f"{message}: {one['what']} ({one['when']}).")


def _show(found: dict[str, Any]) -> None:
    rows = [
        (
            one["id"],
            f"{one['when']}{', paused' if one['paused'] else ''}",
            strip_control(one["what"]),
            strip_control(one["by"]),
        )
        for one in found["timers"]
    ]
    if not rows:
        print_out("No timers are set.")
    else:
        table(("ID", "WHEN", "WHAT", "BY"), rows, shrink=2, prose=True)


def _print_text(text: str) -> None:
    print_out(strip_control(text))
