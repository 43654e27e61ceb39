"""``rappd outbox``: what waits for machines: list, retry, redirect, drop."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Annotated, Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.command_parameters import Argument
from rappd.cli.console import command, dim, print_out, print_status, strip_control
from rappd.cli.formatting import ago, count
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer
from rappd.cli.tables import table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.features.peers.text import trouble_of

_Id = Annotated[str, Argument(metavar="ID")]

_WAITING = ("queued", "delivered", "accepted", "open")
_DIGITS = 4
_EGG_STATES = {"queued": "waiting", "delivered": "on its way", "done": "delivered"}
_RECENT_SECONDS = 86_400.0
_RECENT_ROWS = 10

Row = dict[str, Any]


@click.group(cls=SuggestingGroup)
def outbox() -> None:
    """Manage what waits for machines that are away: list, retry, redirect, drop.

    ID may be its first characters.
    """


@outbox.command("list")
@click.option("--all", "everything", is_flag=True, help="Also what came of older ones.")
def list_(everything: bool, printer: Printer) -> None:
    """List what waits, then recent results."""
    home = HomeClient(Home.here(), reads=True)
    found = home.do("outbox.list", restored=True)
    printer.result(found, lambda found: _show(home, found["outbox"], everything=everything))


def _show(home: HomeClient, rows: list[Row], *, everything: bool) -> None:
    waiting = [row for row in rows if row["state"] in _WAITING]
    over = [row for row in rows if row["state"] not in _WAITING]
    recent = [row for row in over if time.time() - row["created"] < _RECENT_SECONDS][-_RECENT_ROWS:]
    shown = [*waiting, *(over if everything else recent)]
    if shown:
        peers = home.do("peers.list")
        here = {row["fingerprint"] for row in peers["peers"] if row["presence"] == "here"}
        _show_rows(shown, rows, here, running=peers["self"].get("running", True))
    else:
        print_out("Nothing waits for another machine.")
    hidden = len(rows) - len(shown)
    if hidden:
        print_out(dim(f"{count(hidden, 'older one')}: ") + command("rappd outbox list --all"))


@outbox.command()
def retry(id: _Id, printer: Printer) -> None:
    """Try one now."""
    found = ControlClient(Home.here()).do("outbox.retry", id=id)
    row = found["retried"]
    printer.sentence(found, f"Tried now: {_called(row)} to {row['to']}.", then="rappd outbox list")


@outbox.command()
def redirect(id: _Id, peer: str, printer: Printer) -> None:
    """Send a call to PEER: a machine that was set up anew, and so has another key.

    Also a call that came back with a snapshot: nothing of a snapshot is sent by itself. The answer comes to the
    conversation in which it was asked.
    """
    found = ControlClient(Home.here()).do("outbox.redirect", id=id, peer=peer)
    row = found["redirected"]
    then = f"rappd threads show {row['thread'][:8]}"
    printer.sentence(found, f"It goes to {row['to']} now: {_called(row)}.", then=then)


@outbox.command()
def drop(id: _Id, printer: Printer) -> None:
    """Cancel a waiting call. What the other machine has begun may still be done there."""
    found = ControlClient(Home.here()).do("outbox.drop", id=id)
    row = found["dropped"]
    printer.sentence(found, f"Dropped: {_called(row)} to {row['to']}.")


def _show_rows(shown: list[Row], every: list[Row], here: set[str], *, running: bool) -> None:
    now = time.time()
    starts = _starts({row["id"] for row in every})
    lines = [
        [
            starts[row["id"]],
            row["to"],
            _called(row),
            _state(row),
            str(row["tries"]),
            _next(row, here, now),
            _expires(row, now),
        ]
        for row in shown
    ]
    table(["ID", "TO", "WHAT", "STATE", "TRIES", "NEXT", "EXPIRES"], lines, shrink=2, prose=True, whole=(0,))
    for row in shown:
        if trouble_of(row) and row["state"] in (*_WAITING, "failed"):
            print_status("note", f"{starts[row['id']]}: {row['trouble']}")
    if opened := [starts[row["id"]] for row in shown if row["state"] == "open"]:
        print_status(
            "note",
            f"{count(len(opened), 'open call')} came back with a snapshot.",
            f"rappd outbox redirect {opened[0]} PEER",
        )
    if not running:
        print_status("note", "Nothing goes out: rappd isn't running", "rappd start")


def _next(row: Row, here: set[str], now: float) -> str:
    match row["state"]:
        case "queued" | "delivered" if row["peer"] not in here:
            return "when back"
        case "queued" | "delivered":
            return "now" if (row["next"] or 0) <= now + 1 else f"in {_span(row['next'] - now)}"
        case "accepted":
            return "its answer"
    return ""


def _expires(row: Row, now: float) -> str:
    left = row["expires"] - now
    if row["state"] in _WAITING and row["state"] != "open":
        return f"in {_span(left)}" if left > 0 else "now"
    return ago(-left) if row["state"] == "expired" else ""


def _span(seconds: float) -> str:
    return ago(seconds).removesuffix(" ago")


def _starts(ids: Iterable[str]) -> dict[str, str]:
    """Each id's beginning that no other has."""
    ordered = sorted(ids)
    found = {}
    for at, one in enumerate(ordered):
        near = [*ordered[max(0, at - 1) : at], *ordered[at + 1 : at + 2]]
        found[one] = next(
            (
                one[:digits]
                for digits in range(_DIGITS, len(one))
                if not any(other.startswith(one[:digits]) for other in near)
            ),
            one,
        )
    return found


def _called(row: Row) -> str:
    what = strip_control(str(row["what"]))
    return f"Egg {what}" if row["kind"] == "egg" else f'"{what}"'


def _state(row: Row) -> str:
    state = str(row["state"])
    return _EGG_STATES.get(state, state) if row["kind"] == "egg" else state
