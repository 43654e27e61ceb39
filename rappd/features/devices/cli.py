"""``rappd devices``: phones that joined: list, show, rename, change what they may do, remove."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import arrow, command, print_json, print_out, print_status, strip_control
from rappd.cli.formatting import ago
from rappd.cli.tables import table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_WAYS = {"webrtc": "connected", "websocket": "connected (WebSocket)"}

Row = dict[str, Any]


@click.group(cls=SuggestingGroup)
def devices() -> None:
    """Phones that joined: list, show, rename, scopes, send, revoke."""


@devices.command("list")
@_JSON
def list_(as_json: bool) -> None:
    """List phones that joined, the newest first."""
    found = ControlClient(Home.here()).do("devices.list")
    if as_json:
        print_json(found)
        return
    if not found["devices"]:
        print_out(f"No phone has joined. {arrow()} {command('rappd pair')}")
        return
    rows = [
        (strip_control(row["name"]), _way(row), _may(row), str(row["user"])[:20], str(row["id"])[:8])
        for row in found["devices"]
    ]
    table(("NAME", "SEEN", "MAY", "MEMORY", "ID"), rows)


@devices.command()
@click.argument("device")
@_JSON
def show(device: str, as_json: bool) -> None:
    """Show one phone."""
    row = ControlClient(Home.here()).do("devices.show", device=device)
    if as_json:
        print_json(row)
        return
    print_out(strip_control(row["name"]))
    for label, value in (
        ("Seen", f"{_way(row)}, from {row['seen_from']}"), ("May", _may(row)), ("Memory", row["user"]),
        ("Joined", ago(time.time() - row["created_at"])), ("Id", row["id"]),
    ):  # fmt: skip
        print_out(f"  {label:8}{strip_control(str(value))}")


@devices.command()
@click.argument("device")
@click.argument("name")
@_JSON
def rename(device: str, name: str, as_json: bool) -> None:
    """Call a phone NAME."""
    row = ControlClient(Home.here()).do("devices.change", device=device, name=name)
    if as_json:
        print_json(row)
        return
    print_status("good", f"It is called {strip_control(row['name'])} now.")


@devices.command()
@click.argument("device")
@click.option("--scope", type=click.Choice(["talk", "listen"]), help="It may talk, or only listen.")
@click.option("--workflows/--no-workflows", default=None, help="It may start workflows.")
@click.option("--eggs/--no-eggs", default=None, help="It may send eggs, and fetch its session as one.")
@click.option(
    "--notices/--no-notices", default=None, help="It sees what waits for you, and may dismiss news."
)
@click.option("--user", metavar="GUID", help="Whose memory counts when it talks; `shared` for everybody's.")
@_JSON
def scopes(
    device: str,
    scope: str | None,
    workflows: bool | None,
    eggs: bool | None,
    notices: bool | None,
    user: str | None,
    as_json: bool,
) -> None:
    """Show or change what a phone may do."""
    daemon = ControlClient(Home.here())
    body: Row = {}
    if scope is not None:
        body["scope"] = scope
    if workflows is not None:
        body["workflows"] = workflows
    if eggs is not None:
        body["eggs"] = eggs
    if notices is not None:
        body["notices"] = notices
    if user is not None:
        body["user"] = "" if user == "shared" else user
    row = daemon.do("devices.change" if body else "devices.show", device=device, **body)
    if as_json:
        print_json(row)
        return
    print_status("good", f"{strip_control(row['name'])} may {_may(row)}; memory: {row['user']}.")


@devices.command("send")
@click.argument("device")
@click.argument("file", type=click.Path(path_type=Path))
@_JSON
def send_egg(device: str, file: Path, as_json: bool) -> None:
    """Put the egg FILE there for a phone; its page shows it at once."""
    from rappd.features.eggs.cli_options import egg_at

    found = ControlClient(Home.here()).do(
        "devices.send_egg", device=device, path=str(egg_at(file).absolute())
    )
    if as_json:
        print_json(found)
        return
    sent = found["sent"]
    print_status("good", f"{strip_control(sent['name'])} waits for {strip_control(sent['device'])}.")


@devices.command()
@click.argument("device")
@_JSON
def revoke(device: str, as_json: bool) -> None:
    """Remove a phone; its connection ends at once."""
    found = ControlClient(Home.here()).do("devices.revoke", device=device)
    if as_json:
        print_json(found)
        return
    print_status("good", f"{strip_control(found['removed']['name'])} was removed.")


def _way(row: Row) -> str:
    return _WAYS[row["way"]] if row["connected"] else ago(time.time() - row["seen_at"])


def _may(row: Row) -> str:
    words = ["talk, listen" if row["scope"] == "talk" else "listen"]
    return ", ".join([*words, *(name for name in ("workflows", "eggs", "notices") if row[name])])
