"""``rappd egg send`` and ``arrived``: eggs between machines."""

from __future__ import annotations

from pathlib import Path

import click

from rappd.cli.console import arrow, command, dim, print_json, print_out, status_mark, strip_control
from rappd.cli.names import peer_names
from rappd.cli.progress import progress
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import NotFoundError
from twins.byte_sizes import format_bytes

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_SECONDS = 3600.0


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("peer", shell_complete=peer_names)
@_JSON
def send(file: Path, peer: str, as_json: bool) -> None:
    """Send FILE to PEER, sealed for it. There it waits until its owner hatches it.

    When PEER is away, the egg waits here and goes by itself: rappd outbox list.
    """
    send_egg(file, peer, as_json=as_json)


def send_egg(file: Path, peer: str, *, as_json: bool) -> None:
    """Sends an egg and says where it is then. Raises ``NotFoundError``, and what the daemon refuses."""
    if not file.is_file():
        raise NotFoundError(f'No file "{file}".', do="rappd egg pack makes one")
    with progress() as line:
        line(f"Sending {file.name} to {peer}…")
        body = {"path": str(file.absolute()), "peer": peer}
        found = ControlClient(Home.here(), timeout=_SECONDS).do("eggs.send", **body)
    if as_json:
        print_json(found)
        return
    sent = found["sent"]
    if sent["state"] != "done":
        name, peer = strip_control(sent["name"]), strip_control(sent["peer"])
        why = strip_control(sent["why"]) or "others go first"
        print_out(
            f"{status_mark('note')} Egg {name} to {peer}, waiting: {why.rstrip('.')}. It goes by itself."
        )
        print_out(f"  {arrow()} {command('rappd outbox list')}")
        return
    print_out(
        f"{status_mark('good')} Delivered: {strip_control(sent['peer'])} has {strip_control(sent['name'])}. It waits there to be hatched."
    )
    print_out(f"  {arrow()} on {strip_control(sent['peer'])}: {command('rappd egg arrived')}")


@click.command()
@click.option("--discard", default="", metavar="ID", help="Throw one away.")
@_JSON
def arrived(discard: str, as_json: bool) -> None:
    """Eggs that other machines sent and nobody hatched yet."""
    daemon = ControlClient(Home.here())
    if discard:
        found = daemon.do("eggs.throw_away", id=discard)
        if as_json:
            print_json(found)
        else:
            print_out(f"{status_mark('good')} {strip_control(found['discarded']['name'])} is gone.")
        return
    found = daemon.do("eggs.arrived")
    if as_json:
        print_json(found)
        return
    if not found["arrived"]:
        print_out("No egg from another machine waits here.")
        return
    for row in found["arrived"]:
        print_out(
            f"{row['id'][:8]}  {strip_control(row['name'])}  {format_bytes(row['size'])}  {dim('from')} {strip_control(row['from'])}"
        )
        print_out(f"  {arrow()} {command('rappd egg plan ' + row['id'][:8])}")
