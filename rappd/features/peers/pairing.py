"""``rappd peers pair``: the same verb on both machines, by four words, a fingerprint, or a code."""

from __future__ import annotations

from typing import Any

import click

from rappd.cli.command_parameters import cli_command
from rappd.cli.console import arrow, command, interactive, print_out, strip_control
from rappd.cli.printer import Printer, json_option
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import AmbiguousError, NotFoundError, RefusedError, UsageProblemError
from rappd.features.peers.pairing_dialog import PairingDialog, show_ended, typed_at_once, whose_question
from rappd.features.peers.text import called

_SHOW = "\0"  # --code without a value

Row = dict[str, Any]


@cli_command()
@click.argument("name", required=False, default="", metavar="[NAME | ADDRESS]")
@click.option(
    "--mine",
    "whose",
    flag_value="mine",
    help="It is yours: it may use every approved agent, and take snapshots.",
)
@click.option(
    "--friend", "whose", flag_value="friend", help="Somebody else's: it may use only what you share."
)
@click.option("--fingerprint", default="", metavar="FP", help="Its whole key, in the place of the words.")
@click.option(
    "--code", is_flag=False, flag_value=_SHOW, default="", metavar="[CODE]",
    help="The code it shows; without CODE, shows one here.",
)  # fmt: skip
@click.option("--yes", is_flag=True, hidden=True)
@json_option("One JSON object a line, for each change.")
def pair(name: str, whose: str | None, fingerprint: str, code: str, yes: bool, printer: Printer) -> None:
    """Agree to trust another machine, by four words.

    The same is typed on both machines. Both show four words; the same words mean nobody is in between.
    NAME is one that `rappd peers list` shows; it can be left out when just one machine asks.
    Without a terminal only --fingerprint or --code CODE can trust.
    """
    shows_code = code == _SHOW
    by_hand = not fingerprint and (not code or shows_code)
    if yes:
        raise RefusedError("--yes never trusts a machine.", do="Compare the words, or give --fingerprint.")
    if by_hand and not interactive():
        raise RefusedError(
            "Trusting a machine needs you at a terminal.",
            do=f"rappd peers pair {name or 'NAME'} --fingerprint FP, or --code CODE",
        )
    if fingerprint and code:
        raise UsageProblemError("--fingerprint and --code are two ways.", do="Give one of them.")
    daemon = ControlClient(Home.here())
    listed = daemon.do("peers.list")
    if shows_code:
        if name:
            raise UsageProblemError(
                f"A code names no machine; leave {strip_control(name)} out.",
                do=f"rappd peers pair --code, and there: rappd peers pair {_own(listed)} --code CODE",
            )
        _show_code(daemon, listed, whose, printer)
        return
    wanted = name or _only_one(listed)
    if not whose and printer.asks and not by_hand:
        whose = typed_at_once(whose_question(strip_control(wanted)))
    if fingerprint:
        _pin(daemon, listed, wanted, fingerprint, whose, printer)
        return
    body = {"peer": wanted, "whose": whose or "", **({"code": code} if code else {})}
    talk = PairingDialog(daemon, _own(listed), printer)
    talk.follow(lambda: daemon.do("pairings.begin", **body)["pairing"], whose)


def _show_code(daemon: ControlClient, listed: Row, whose: str | None, printer: Printer) -> None:
    whose = whose or typed_at_once(whose_question("the machine that will type the code"))
    talk = PairingDialog(daemon, _own(listed), printer)
    talk.follow(lambda: daemon.do("pairings.begin", offer_code=True, whose=whose)["pairing"], whose)


def _pin(
    daemon: ControlClient, listed: Row, wanted: str, fingerprint: str, whose: str | None, printer: Printer
) -> None:
    """Trusts at once, on this side; the other side does the same by itself."""
    body = {"peer": wanted, "fingerprint": fingerprint, "whose": whose or ""}
    row = daemon.do("pairings.begin", **body)["pairing"]
    printer.result({"pairing": row}, _show_pinned, row, whose or "friend", listed)


def _show_pinned(row: Row, whose: str, listed: Row) -> None:
    show_ended(row, row["peer"], whose)
    there = f"rappd peers pair {_own(listed)} --fingerprint {listed['self']['fingerprint']}"
    print_out(f"  {arrow()} there: {command(there)}")


def _only_one(listed: Row) -> str:
    """The machine that the verb means without a name: the one that asks, else the one that was found."""
    asking = [one for one in listed["asking"] if one["state"] in ("asking", "words")]
    found = [row for row in listed["peers"] if row["presence"] == "found"]
    for rows in (asking, found):
        if len(rows) == 1:
            key = rows[0].get("fingerprint") or rows[0]["address"]
            return str(key)
        if rows:
            raise AmbiguousError("Several machines are there.", do="`rappd peers list` names them; give one.")
    raise NotFoundError(
        "No machine asks, and none was found.", do="rappd peers list, or rappd peers add ADDRESS"
    )


def _own(listed: Row) -> str:
    """Returns the command to type on the other machine."""
    return called(listed["self"]["name"], listed["self"]["fingerprint"])
