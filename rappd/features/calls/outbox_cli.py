"""``rappd outbox``: what waits for machines: list, retry, redirect, drop."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import (
    arrow,
    command,
    dim,
    print_json,
    print_out,
    print_status,
    status_mark,
    strip_control,
)
from rappd.cli.formatting import ago, count
from rappd.cli.home_client import HomeClient
from rappd.cli.tables import table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.features.peers.text import trouble_of

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_ID = click.argument("id", metavar="ID")

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
@_JSON
def list_(everything: bool, as_json: bool) -> None:
    """List what waits, then recent results."""
    home = HomeClient(Home.here(), reads=True)
    found = home.do("outbox.list", restored=True)
    if as_json:
        print_json(found)
        return
    rows = found["outbox"]
    waiting = [row for row in rows if row["state"] in _WAITING]
    over = [row for row in rows if row["state"] not in _WAITING]
    recent = [row for row in over if time.time() - row["created"] < _RECENT_SECONDS][-_RECENT_ROWS:]
    shown = [*waiting, *(over if everything else recent)]
    if shown:
        peers = home.do("peers.list")
        here = {row["fingerprint"] for row in peers["peers"] if row["presence"] == "here"}
        _show(shown, rows, here, running=peers["self"].get("running", True))
    else:
        print_out("Nothing waits for another machine.")
    hidden = len(rows) - len(shown)
    if hidden:
        print_out(dim(f"{count(hidden, 'older one')}: ") + command("rappd outbox list --all"))


@outbox.command()
@_ID
@_JSON
def retry(id: str, as_json: bool) -> None:
    """Try one now."""
    found = ControlClient(Home.here()).do("outbox.retry", id=id)
    if as_json:
        print_json(found)
        return
    row = found["retried"]
    print_out(f"{status_mark('good')} Tried now: {_called(row)} to {row['to']}.")
    print_out(f"  {arrow()} {command('rappd outbox list')}")


@outbox.command()
@_ID
@click.argument("peer")
@_JSON
def redirect(id: str, peer: str, as_json: bool) -> None:
    """Send a call to PEER: a machine that was set up anew, and so has another key.

    Also a call that came back with a snapshot: nothing of a snapshot is sent by itself. The answer comes to the
    conversation in which it was asked.
    """
    found = ControlClient(Home.here()).do("outbox.redirect", id=id, peer=peer)
    if as_json:
        print_json(found)
        return
    row = found["redirected"]
    print_out(f"{status_mark('good')} It goes to {row['to']} now: {_called(row)}.")
    print_out(f"  {arrow()} {command('rappd threads show ' + row['thread'][:8])}")


@outbox.command()
@_ID
@_JSON
def drop(id: str, as_json: bool) -> None:
    """Cancel a waiting call. What the other machine has begun may still be done there."""
    found = ControlClient(Home.here()).do("outbox.drop", id=id)
    if as_json:
        print_json(found)
        return
    row = found["dropped"]
    print_out(f"{status_mark('good')} Dropped: {_called(row)} to {row['to']}.")


def _show(shown: list[Row], every: list[Row], here: set[str], *, running: bool) -> None:
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
