"""``rappd egg send`` and ``arrived``: eggs between machines."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rappd.cli.console import arrow, command, dim, mark, print_json, say, tame
from rappd.cli.formatting import size, tilde
from rappd.cli.progress import progress
from rappd.control_client import Daemon
from rappd.daemon.home import Home
from rappd.errors import NotFound

if TYPE_CHECKING:
    from rappd.operations.egg_packing import Order

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_SECONDS = 3600.0


def pack_for(order: Order, peer: str) -> dict[str, Any]:
    """Packs and seals for a peer; the running daemon knows its key."""
    body = {
        "twin": order.twin,
        "form": order.form,
        "item": order.item,
        "into": str(Path(order.into).absolute()) if order.into else "",
        "exclude_memory": order.exclude_memory,
        "allow": sorted(order.allow),
        "overwrite": order.overwrite,
        "to": peer,
    }
    return Daemon(Home.here(), timeout=_SECONDS).post("/eggs/pack", body)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("peer")
@_JSON
def send(file: Path, peer: str, as_json: bool) -> None:
    """Send FILE to PEER, sealed for it. There it waits until its owner hatches it.

    When PEER is away, the egg waits here and goes by itself: rappd outbox list.
    """
    if not file.is_file():
        raise NotFound(f'No file "{file}".', do="rappd egg pack makes one")
    with progress() as line:
        line(f"Sending {file.name} to {peer}…")
        body = {"path": str(file.absolute()), "peer": peer}
        found = Daemon(Home.here(), timeout=_SECONDS).post("/eggs/send", body)
    if as_json:
        print_json(found)
        return
    sent = found["sent"]
    if sent["state"] != "done":
        name, peer = tame(sent["name"]), tame(sent["peer"])
        why = tame(sent["why"]) or "others go first"
        say(f"{mark('note')} Egg {name} to {peer}, waiting: {why.rstrip('.')}. It goes by itself.")
        say(f"  {arrow()} {command('rappd outbox list')}")
        return
    say(
        f"{mark('good')} Delivered: {tame(sent['peer'])} has {tame(sent['name'])}. It waits there to be hatched."
    )
    say(f"  {arrow()} on {tame(sent['peer'])}: {command('rappd egg arrived')}")


@click.command()
@click.option("--discard", default="", metavar="ID", help="Throw one away.")
@_JSON
def arrived(discard: str, as_json: bool) -> None:
    """Eggs that other machines sent and nobody hatched yet."""
    daemon = Daemon(Home.here())
    if discard:
        found = daemon.delete(f"/eggs/arrived/{discard}")
        if as_json:
            print_json(found)
        else:
            say(f"{mark('good')} {tame(found['discarded']['name'])} is gone.")
        return
    found = daemon.get("/eggs/arrived")
    if as_json:
        print_json(found)
        return
    if not found["arrived"]:
        say("No egg from another machine waits here.")
        return
    for row in found["arrived"]:
        say(f"{row['id'][:8]}  {tame(row['name'])}  {size(row['size'])}  {dim('from')} {tame(row['from'])}")
        path = tilde(row["path"])
        say(f"  {arrow()} {command(f'rappd egg plan {path}')}")
