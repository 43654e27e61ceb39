"""``rappd devices``: phones that joined: list, show, rename, change what they may do, remove."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import print_out, strip_control
from rappd.cli.formatting import ago
from rappd.cli.printer import JSON, Printer
from rappd.cli.tables import Table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home

WHOSE = {"mine": "mine", "guest": "a guest's"}
_WAYS = {"webrtc": "connected", "websocket": "connected (WebSocket)"}

Row = dict[str, Any]


@click.group(cls=SuggestingGroup)
def devices() -> None:
    """Phones that joined: list, show, rename, scopes, send, revoke."""


@devices.command("list")
def list_(printer: Printer) -> None:
    """List phones that joined, the newest first."""
    found = ControlClient(Home.here()).do("devices.list")
    printer.result(found, _DEVICES, found["devices"])


@devices.command()
def show(device: str, printer: Printer) -> None:
    """Show one phone."""
    row = ControlClient(Home.here()).do("devices.show", device=device)
    printer.result(row, _show)


def _show(row: Row) -> None:
    print_out(strip_control(row["name"]))
    for label, value in (
        ("Seen", f"{_way(row)}, from {row['seen_from']}"), ("Whose", WHOSE[row["kind"]]), ("May", _may(row)), ("Memory", row["user"]),
        ("Joined", ago(time.time() - row["created_at"])), ("Id", row["id"]),
    ):  # fmt: skip
        print_out(f"  {label:8}{strip_control(str(value))}")


@devices.command()
def rename(device: str, name: str, printer: Printer) -> None:
    """Call a phone NAME."""
    row = ControlClient(Home.here()).do("devices.change", device=device, name=name)
    printer.done(row, f"It is called {strip_control(row['name'])} now.")


@devices.command()
@click.argument("device")
@click.option("--scope", type=click.Choice(["talk", "listen"]), help="It may talk, or only listen.")
@click.option("--workflows/--no-workflows", default=None, help="It may start workflows.")
@click.option("--eggs/--no-eggs", default=None, help="It may send eggs, and fetch its session as one.")
@click.option(
    "--notices/--no-notices", default=None, help="It sees what waits for you, and may dismiss news."
)
@click.option(
    "--approve/--no-approve", default=None, help="It may answer what waits for you, if it joined over https."
)
@click.option(
    "--mine", "kind", flag_value="mine", help="It is your own: your memory, conversations and rights."
)
@click.option(
    "--guest", "kind", flag_value="guest", help="It is a guest's: a memory of its own, and it talks only."
)
@click.option("--session/--no-session", default=None, help="It joins the session of the phones.")
@click.option("--user", metavar="GUID", help="Whose memory counts when it talks; `own` for its own.")
@JSON
def scopes(
    device: str,
    kind: str | None,
    session: bool | None,
    scope: str | None,
    workflows: bool | None,
    eggs: bool | None,
    notices: bool | None,
    approve: bool | None,
    user: str | None,
    printer: Printer,
) -> None:
    """Show or change what a phone may do."""
    daemon = ControlClient(Home.here())
    asked: Row = {
        "kind": kind, "session": session, "scope": scope, "workflows": workflows, "eggs": eggs,
        "notices": notices, "approve": approve, "user": "" if user == "own" else user,
    }  # fmt: skip
    body = {key: value for key, value in asked.items() if value is not None}
    row = daemon.do("devices.change" if body else "devices.show", device=device, **body)
    name = strip_control(row["name"])
    printer.done(row, f"{name} is {WHOSE[row['kind']]}, and may {_may(row)}; memory: {row['user']}.")


@devices.command("send")
def send_egg(device: str, file: Path, printer: Printer) -> None:
    """Put the egg FILE there for a phone; its page shows it at once."""
    from rappd.features.eggs.cli_options import egg_at

    found = ControlClient(Home.here()).do(
        "devices.send_egg", device=device, path=str(egg_at(file).absolute())
    )
    printer.done(found, f"{found['sent']['name']} waits for {found['sent']['device']}.")


@devices.command()
def revoke(device: str, printer: Printer) -> None:
    """Remove a phone; its connection ends at once."""
    found = ControlClient(Home.here()).do("devices.revoke", device=device)
    printer.done(found, f"{strip_control(found['removed']['name'])} was removed.")


def _way(row: Row) -> str:
    return _WAYS[row["way"]] if row["connected"] else ago(time.time() - row["seen_at"])


def _may(row: Row) -> str:
    words = ["talk, listen" if row["scope"] == "talk" else "listen"]
    more = [name for name in ("workflows", "eggs", "notices", "approve") if row[name]]
    return ", ".join([*words, *more, *(["the session"] if row["invited"] else [])])


_DEVICES = Table(
    ("NAME", "name"),
    ("SEEN", _way),
    ("WHOSE", lambda row: WHOSE[row["kind"]]),
    ("MAY", _may),
    ("MEMORY", lambda row: str(row["user"])[:20]),
    ("ID", lambda row: str(row["id"])[:8]),
    none=("No phone has joined. ", "rappd pair"),
)
