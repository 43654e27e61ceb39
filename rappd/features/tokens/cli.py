"""``rappd token``: what lets a program call this machine: issue, list, revoke.

(On screens, an access.)
"""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import print_err, print_out, status_mark, strip_control, wrapped
from rappd.cli.formatting import ago
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer
from rappd.cli.tables import Table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import AmbiguousError, ConfirmationNeededError, NotFoundError
from rappd.features.tokens.client_settings import PROTOCOLS

_DIGITS = 4

Row = dict[str, Any]


@click.group(cls=SuggestingGroup)
def token() -> None:
    """Let a program call this machine without being paired: issue, list, revoke."""


@token.command()
@click.option(
    "--may", "caps", multiple=True, metavar="CAPABILITY", default=("HELP.brainstem",), show_default=True,
    help="What it may do; repeatable.",
)  # fmt: skip
@click.option("--days", type=click.IntRange(1, 3650), default=90, show_default=True, help="How long.")
@click.option("--totp", is_flag=True, help="It comes in by an authenticator's codes, for messages in XML.")
@click.option(
    "--client",
    type=click.Choice(PROTOCOLS),
    default=None,
    help="Print what to paste into a program that speaks it.",
)
def issue(
    name: str, caps: tuple[str, ...], days: int, totp: bool, client: str | None, printer: Printer
) -> None:
    """Make an access for NAME. Its text is shown once, and never kept.

    HELP.brainstem is a talk, HELP.brainstem.Clock one agent, HELP.brainstem.* both and every agent.
    """
    if totp and client:
        raise click.UsageError("--totp is for messages in XML; a client shows its token.")
    asked = {"name": name, "caps": list(caps), "days": days, "totp": totp}
    found = ControlClient(Home.here()).do("tokens.issue", **asked, **({"client": client} if client else {}))
    printer.result(found, _show_client if client else _show_issued, found["token"])


def _show_client(row: Row) -> None:
    what = f"{strip_control(row['name'])} may {_may(row)} until {_day(row['expires_at'])}."
    print_err(f"{status_mark('good', sys.stderr)} {wrapped(what, 2, stream=sys.stderr)}")
    copy = f"Copy this file to the program's machine, beside it: {row['certificate']}"
    print_err(wrapped(copy, 0, stream=sys.stderr))
    print_err(wrapped("Shown once. Paste there:", 0, stream=sys.stderr))
    print_out("\n".join(row["lines"]))


def _show_issued(row: Row) -> None:
    what = f"{strip_control(row['name'])} may {_may(row)} until {_day(row['expires_at'])}."
    print_err(f"{status_mark('good', sys.stderr)} {wrapped(what, 2, stream=sys.stderr)}")
    if "secret" in row:
        _show_secret(row)
        return
    print_err(wrapped("Shown once. Anyone who has it may do that:", 0, stream=sys.stderr))
    print_out(str(row["text"]))


def _show_secret(row: Row) -> None:
    from rappd.tether.qr_code import as_text

    advice = "Shown once. Scan it with an authenticator, or type the secret there:"
    print_err(wrapped(advice, 0, stream=sys.stderr))
    if sys.stdout.isatty():
        try:
            for line in as_text(str(row["uri"])):
                print_out(line)
        except ImportError:
            print_err(wrapped("No QR code: the package qrcode is not installed.", 0, stream=sys.stderr))
    print_out(str(row["uri"]))
    print_out(str(row["secret"]))


@token.command("list")
def list_(printer: Printer) -> None:
    """List issued tokens, the latest first."""
    found = HomeClient(Home.here(), reads=True).do("tokens.list")
    printer.result(found, _TOKENS, found["tokens"])


@token.command()
@click.argument("wanted", metavar="NAME|ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
def revoke(wanted: str, yes: bool, printer: Printer) -> int:
    """End an access at once, by its name or the beginning of its ID."""
    daemon = ControlClient(Home.here())
    row = _one(daemon.do("tokens.list")["tokens"], wanted)
    if not yes:
        question = f"End the access of {strip_control(row['name'])} ({_short(row)})?"
        if not printer.confirm(question, f"The access of {row['name']} would end; nothing was done."):
            print_err("Nothing was done.")
            return ConfirmationNeededError.exit_code
    found = daemon.do("tokens.revoke", jti=row["jti"])
    printer.sentence(found, f"token {strip_control(row['name'])} is revoked.")
    return 0


def _one(rows: list[Row], wanted: str) -> Row:
    """The living one of that name or id; else one that is over."""
    by_id = [row for row in rows if len(wanted) >= _DIGITS and row["jti"].startswith(wanted.lower())]
    found = [row for row in rows if row["name"].casefold() == wanted.casefold()] or by_id
    found = [row for row in found if not row.get("revoked_at")] or found[:1]
    if not found:
        raise NotFoundError(f'Nothing was issued for "{wanted[:60]}".', do="rappd token list")
    if len(found) > 1:
        some = ", ".join(_short(row) for row in found[:4])
        raise AmbiguousError(f'"{wanted[:60]}" has several: {some}.', do="Give the ID.")
    return found[0]


def _short(row: Row) -> str:
    return str(row["jti"])[:8]


def _may(row: Row) -> str:
    return strip_control(", ".join(row["caps"]))


def _state(row: Row) -> str:
    if row.get("revoked_at"):
        return "revoked"
    return f"until {_day(row['expires_at'])}" if row["expires_at"] > time.time() else "expired"


def _used(row: Row) -> str:
    return ago(time.time() - row["used_at"]) if row.get("used_at") else "never"


def _day(seconds: float) -> str:
    return time.strftime("%d %b %Y", time.localtime(seconds)).lstrip("0")


_TOKENS = Table(
    ("ID", _short),
    ("NAME", "name"),
    ("MAY", _may),
    ("STATE", _state),
    ("LAST USED", _used),
    none=("Nothing was issued yet.\n  ", "rappd token issue NAME"),
    shrink=2,
    whole=(0,),
)
