"""``rappd egg send``, ``arrived`` and ``signers``: eggs between machines, and whose code runs unread."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from rappd.cli.command_parameters import cli_command
from rappd.cli.completion_names import peer_names
from rappd.cli.console import arrow, command, dim, print_out, status_mark, strip_control
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer, show_sentence
from rappd.cli.progress import progress
from rappd.cli.tables import Table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import NotFoundError
from twins.byte_sizes import format_bytes

_SECONDS = 3600.0
_KEY = re.compile(r"[0-9a-f]{64}")


@cli_command()
@click.argument("peer", shell_complete=peer_names)
def send(file: Path, peer: str, printer: Printer) -> None:
    """Send FILE to PEER, sealed for it. There it waits until its owner hatches it.

    When PEER is away, the egg waits here and goes by itself: rappd outbox list.
    """
    send_egg(file, peer, printer)


def send_egg(file: Path, peer: str, printer: Printer) -> None:
    """Sends an egg and says where it is then. Raises ``NotFoundError``, and what the daemon refuses."""
    if not file.is_file():
        raise NotFoundError(f'No file "{file}".', do="rappd egg pack makes one")
    with progress(f"Sending {file.name} to {peer}…"):
        body = {"path": str(file.absolute()), "peer": peer}
        found = ControlClient(Home.here(), timeout=_SECONDS).do("eggs.send", **body)
    printer.result(found, _show_sent, found["sent"])


def _show_sent(sent: dict[str, Any]) -> None:
    name, peer = strip_control(sent["name"]), strip_control(sent["peer"])
    if sent["state"] != "done":
        why = strip_control(sent["why"]) or "others go first"
        print_out(
            f"{status_mark('note')} Egg {name} to {peer}, waiting: {why.rstrip('.')}. It goes by itself."
        )
        print_out(f"  {arrow()} {command('rappd outbox list')}")
        return
    show_sentence(f"Delivered: {peer} has {name}. It waits there to be hatched.")
    print_out(f"  {arrow()} on {peer}: {command('rappd egg arrived')}")


@cli_command()
@click.option("--discard", default="", metavar="ID", help="Throw one away.")
def arrived(discard: str, printer: Printer) -> None:
    """Eggs that other machines sent and nobody hatched yet."""
    daemon = ControlClient(Home.here())
    if discard:
        found = daemon.do("eggs.throw_away", id=discard)
        printer.sentence(found, f"{found['discarded']['name']} is gone.")
        return
    found = daemon.do("eggs.arrived")
    printer.result(found, _show_arrived, found["arrived"])


def _show_arrived(rows: list[dict[str, Any]]) -> None:
    if not rows:
        print_out("No egg from another machine waits here.")
    for row in rows:
        print_out(
            f"{row['id'][:8]}  {strip_control(row['name'])}  {format_bytes(row['size'])}  {dim('from')} {strip_control(row['from'])}"
        )
        print_out(f"  {arrow()} {command('rappd egg plan ' + row['id'][:8])}")


@cli_command()
@click.option("--trust", "trusted", metavar="PEER|KEY", help="Trust a paired machine's key, or this one.")
@click.option("--name", default="", help="What to call it.")
@click.option("--revoke", "revoked", metavar="NAME|KEY", help="Do not trust it any more.")
def signers(trusted: str | None, name: str, revoked: str | None, printer: Printer) -> None:
    """List, add or remove the senders whose eggs run their code here without asking you.

    PEER is a paired machine, as `rappd peers list` names it; KEY the 64 digits of any machine's key.
    """
    home = HomeClient(Home.here(), reads=not (trusted or revoked))
    if trusted:
        found = home.do("eggs.trust", fingerprint=_key_of(home, trusted), name=name)
    elif revoked:
        names = {one["name"]: one["fingerprint"] for one in home.do("eggs.signers")["signers"]}
        found = home.do("eggs.revoke", fingerprint=names.get(revoked) or _key_of(home, revoked))
    else:
        found = home.do("eggs.signers")
        if not Home.here().has_identity():
            found["own"] = None
    if "message" in found:
        printer.sentence(found, found["message"])
    else:
        printer.result(found, _show_signers)


def _show_signers(found: dict[str, Any]) -> None:
    _SIGNERS(found["signers"])
    print_out(dim(f"This machine: {found['own'] or 'no key yet, rappd start makes one'}"))


_SIGNERS = Table(
    ("NAME", "name"),
    ("FINGERPRINT", "fingerprint"),
    ("SINCE", lambda row: row["since"][:10]),
    none=("Nobody yet; this machine's own eggs are trusted.", ""),
    whole=(1,),
)


def _key_of(home: HomeClient, selector: str) -> str:
    """The key that was typed, or the one of the paired machine that was named. Raises ``NoSuchPeerError``."""
    if _KEY.fullmatch(selector):
        return selector
    return str(home.do("peers.show", peer=selector)["peer"]["fingerprint"])
