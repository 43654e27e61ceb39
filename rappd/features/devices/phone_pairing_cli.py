"""``rappd pair``: a QR code for a phone, the digits to compare, and the result."""

from __future__ import annotations

import select
import sys
import time
from typing import Any

import click

from envelopes.errors import ReportableError
from rappd.cli.command_parameters import cli_command
from rappd.cli.console import (
    command,
    interactive,
    print_err,
    print_out,
    print_status,
    strip_control,
    terminal_width,
    utf8,
)
from rappd.cli.printer import Printer, json_option
from rappd.cli.progress import progress
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import UsageProblemError

_PAUSE = 0.3
_NOBODY_SECONDS = 20.0
_NOBODY = "Nobody came yet. Is the phone on this Wi-Fi (not mobile data, not a guest network)? Does a firewall block port {port}?"
_WARNS = (
    "The phone's browser warns that it does not know this computer: nobody else vouches for its certificate. "
    "Go on there only if the certificate's SHA-256 fingerprint is:"
)

_VERDICTS = {
    "m": (True, "mine"), "mine": (True, "mine"), "g": (True, "guest"), "guest": (True, "guest"),
    "n": (False, "guest"), "no": (False, "guest"), "": (False, "guest"),
}  # fmt: skip
"""A "y" is asked again: it does not say whose phone it is."""
_PAIRED = {
    "mine": "it is yours, and sees your conversations and memory",
    "guest": "it is a guest's, with conversations and a memory of its own",
}

Row = dict[str, Any]


class PhoneNotPairedError(ReportableError):
    """The window ended without a phone."""

    def __init__(self, state: str) -> None:
        if state == "differs":
            super().__init__(
                "Stopped: the numbers differ. Nothing was shared.",
                do="rappd pair; if it happens again, change the Wi-Fi",
            )
        else:
            super().__init__("The QR code has expired.", do="rappd pair")
        self._state = state

    @property
    def code(self) -> str:  # type: ignore[override]  # how it ended
        return f"pair_{self._state}"

    @property
    def exit_code(self) -> int:  # type: ignore[override]
        return 5 if self._state == "differs" else 8


@cli_command()
@click.argument("words", nargs=-1, metavar="")
@click.option("--name", default="", metavar="NAME", help="What the phone is called here.")
@click.option("--ttl", type=click.IntRange(1, 600), metavar="SECONDS", help="How long the code lives.")
@click.option(
    "--scope", type=click.Choice(["talk", "listen"]), default="talk", show_default=True,
    help="It may talk, or only listen.",
)  # fmt: skip
@click.option(
    "--user",
    default="",
    metavar="GUID",
    help="Whose memory counts when it talks; its own without this, or yours on your own phone.",
)
@click.option("--session", is_flag=True, help="It joins the session of the phones.")
@click.option("--cancel", is_flag=True, help="Cancel the code that is shown now.")
@json_option("One JSON object a line, for each change.")
def pair(
    words: tuple[str, ...],
    name: str,
    ttl: int | None,
    scope: str,
    user: str,
    session: bool,
    cancel: bool,
    printer: Printer,
) -> None:
    """Let a phone join by scanning a QR code.

    For another computer: rappd peers pair.
    """
    if words:
        raise UsageProblemError(
            "`rappd pair` is for phones.", do=f"For machines: `rappd peers pair {words[0][:60]}`."
        )
    daemon = ControlClient(Home.here())
    if cancel:
        daemon.do("devices.close_window")
        print_status("good", "The code is cancelled.")
        return
    body: Row = {"name": name, "scope": scope, "user": user, "session": session}
    row = daemon.do("devices.open_window", **body, ttl=ttl or None)
    try:
        _follow(daemon, row, printer)
    except (KeyboardInterrupt, click.Abort):
        daemon.do("devices.close_window")
        printer.note(_show_cancelled)
        raise


def _follow(daemon: ControlClient, row: Row, printer: Printer) -> None:
    shown = ""
    while True:
        state = row["state"]
        if state != shown:
            printer.event({"window": row}, _show_state, row)
        shown = state
        if state == "paired":
            return
        if state not in ("open", "compare", "waiting"):
            raise PhoneNotPairedError("differs" if state == "differs" else "expired")
        row = (
            _asked(daemon, row, printer)
            if state == "compare" and not printer.for_scripts
            else _waited(daemon, state, printer)
        )


def _show_state(row: Row) -> None:
    if row["state"] == "open":
        _show(row)
    elif row["state"] == "paired":
        _show_paired(row["device"])


def _show_cancelled() -> None:
    print_err()
    print_status("note", "The code is void; no phone joined.", "rappd pair", stream=sys.stderr)


def _show(row: Row) -> None:
    from rappd.tether.qr_code import as_text

    print_err("Point the phone's camera here. The phone must be on the same Wi-Fi.")
    print_err("If it asks about devices on the network, allow it: that is how it reaches this computer.")
    if interactive() and utf8(sys.stdout):
        try:
            lines = as_text(row["links"][0])
        except ImportError:
            lines = []
            print_status(
                "note", "The QR code cannot be drawn.", "pip install 'rappd[tether]'", stream=sys.stderr
            )
        if lines and terminal_width() >= len(lines[0]) - 12:
            print_out("\n".join(lines))
    if row["port_taken"]:
        print_status(
            "note", f"Port {row['port_taken']} is taken; phones use {row['port']}.", stream=sys.stderr
        )
    for link in row["links"][:3]:
        print_out(str(link))
    print_err(f"Camera does not help? Open {row['short_links'][0]} and type {row['code']}")
    if row["certificate"]:
        print_err(_WARNS)
        print_err(row["certificate"])


def _waited(daemon: ControlClient, known: str, printer: Printer) -> Row:
    began, hinted = time.monotonic(), False
    with progress() as shown:
        while True:
            row = daemon.do("devices.window")
            if row["state"] != known:
                return row
            if "remaining" in row:
                minutes, seconds = divmod(int(row["remaining"]), 60)
                what = "Waiting for the phone" if known == "open" else "Now tap “Same number” on the phone"
                printer.note(shown, f"{what}. Closes in {minutes}:{seconds:02}")
            if (
                known == "open"
                and not hinted
                and not row.get("visited")
                and time.monotonic() - began > _NOBODY_SECONDS
            ):
                hinted = True
                print_status("note", _NOBODY.format(port=row["port"]), stream=sys.stderr)
            time.sleep(_PAUSE)


def _asked(daemon: ControlClient, row: Row, printer: Printer) -> Row:
    print_err(f'"{strip_control(row["name"])}" is here.')
    print_err()
    print_err(f"  {row['digits']}")
    print_err()
    if not interactive():
        print_err("Answer in the page, under Devices.")
        return _waited(daemon, "compare", printer)
    print_err("Does the phone show the same number?")
    verdict = None
    while verdict is None:
        sys.stderr.write("Same, mine [m]   Same, a guest's [g]   Different [n]: ")
        sys.stderr.flush()
        while not select.select([sys.stdin], [], [], _PAUSE)[0]:
            now = daemon.do("devices.window")
            if now["state"] != "compare":  # the phone said no, or the time is over
                print_err()
                return now
        line = sys.stdin.readline()
        verdict = _VERDICTS.get(line.strip().lower() if line else "n")
    same, kind = verdict
    found = daemon.do("devices.answer", id=row["id"], same=same, kind=kind)
    return {**found, "state": "waiting"} if found["state"] == "compare" else found


def _show_paired(device: Row) -> None:
    what = _PAIRED[device["kind"]]
    if device["scope"] == "listen":
        what = "it may listen"
    print_status(
        "good", f"{strip_control(device['name'])} joined; {what}. Change: {command('rappd devices scopes')}"
    )
