"""``rappd neighborhood members``, ``probe`` and ``send``. They work with the daemon down, but for ``send``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import msgspec

from agents.programs import programs
from neighborhoods.snapshot.snapshot_folder import SnapshotFolder
from neighborhoods.snapshot.token_uses import TokenUses
from rappd.cli.command_parameters import cli_command
from rappd.cli.completion_names import peer_names
from rappd.cli.console import arrow, command, confirmed, print_out, status_mark, strip_control, wrapped
from rappd.cli.formatting import count
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.cli.tables import Table, table
from rappd.daemon.home import Home
from rappd.features.eggs.peers_cli import send_egg
from twins.byte_sizes import format_bytes

_PARTIAL = 7
_SECONDS = 3600.0


@cli_command()
def members(printer: Printer) -> None:
    """List your machines: paired, found, and written down in peers.json."""
    found = HomeClient(Home.here(), reads=True).do("snapshots.members")
    printer.result(found, _show_members, found["members"])


@cli_command()
@click.argument("machine", nargs=-1, shell_complete=peer_names)
def probe(machine: tuple[str, ...], printer: Printer) -> int:
    """Ask whether each MACHINE can be read now; all without any. Nothing is written."""
    home = HomeClient(Home.here(), reads=True, timeout=_SECONDS)
    lent = variables_of_terminal(home)
    ask_for_tokens(home, printer, lent, machine)
    with progress(f"Asking {count(len(machine), 'machine') if machine else 'all machines'}…"):
        found = home.do("snapshots.probe", machines=machine, variables=lent)
    rows = found["members"]
    printer.result(found, _show_probes, rows)
    whole = all(row["probe"]["reachable"] and not row["probe"].get("unread") for row in rows)
    return 0 if whole else _PARTIAL


def variables_of_terminal(home: HomeClient) -> dict[str, str]:
    """The SSH agent and access keys of this terminal: the daemon may have been started without them."""
    return programs.from_owner(*home.do("snapshots.variables")["variables"])


def ask_for_tokens(
    home: HomeClient, printer: Printer, variables: dict[str, str], machines: Sequence[str] = ()
) -> None:
    """Asks the person at the terminal for each variable and host that was not allowed yet; without one, nothing."""
    if not printer.asks:
        return
    found = home.do("snapshots.unasked_tokens", machines=machines, variables=variables)
    for use in found["unasked"]:
        variable, host = use["variable"], use["host"]
        question = f"peers.json sends the value of {variable} to {host} for {strip_control(use['member'])}. Allow it?"
        if confirmed(question):
            TokenUses(Home.here().token_uses).allow(variable, host)


@cli_command()
@click.argument("peer", shell_complete=peer_names)
def send(file: str, peer: str, printer: Printer) -> None:
    """Send the snapshot FILE, or of that name, to PEER, sealed for it. There it waits until its owner hatches it.

    Cut off, it goes on where it stopped: rappd outbox list.
    """
    send_egg(SnapshotFolder(Home.here().root).find(file), peer, printer)


@cli_command()
@click.option("--remove", is_flag=True, help="Take the yes back.")
def token(*, variable: str | None = None, host: str | None = None, remove: bool, printer: Printer) -> None:
    """Let the value of VARIABLE go to HOST, where peers.json says so (auth_token_env); alone: list what is allowed.

    peers.json may be a copy of somebody else's: no variable goes anywhere before you said so here.
    """
    uses = TokenUses(Home.here().token_uses)
    if variable is None:
        found = [msgspec.to_builtins(one) for one in uses.listing()]
        printer.result({"allowed": found}, _TOKENS, found)
        return
    if host is None:
        raise click.UsageError("Name the host, too, as in github.com.")
    if remove:
        was = uses.remove(variable, host)
        printer.done(
            {"removed": was}, f"{variable} goes to {host} no more." if was else "That was not allowed."
        )
        return
    use = uses.allow(variable, host)
    what = f"{use.variable} may go to {use.host}."
    printer.done({"use": msgspec.to_builtins(use)}, what, "rappd neighborhood probe")


_TOKENS = Table(
    ("VARIABLE", "variable"),
    ("HOST", "host"),
    ("SINCE", "at"),
    none=("No variable goes to any host.", ""),
    shrink=1,
)


def _show_members(rows: list[dict[str, Any]]) -> None:
    if not rows:
        print_out("No other machine is known.")
        print_out(f"  {arrow()} {command('rappd peers add ADDRESS')}, or ssh_host in peers.json")
        return
    table(["MACHINE", "KNOWN AS", "READ BY", "WHERE"], [*map(_member_row, rows)], shrink=3)
    for row in rows:
        if row["trouble"]:
            print_out(f"{status_mark('note')} {strip_control(row['name'])}: {row['trouble']}")


def _member_row(row: dict[str, Any]) -> list[str]:
    known = "this machine" if row["self"] else row["whose"] or row["presence"] or "written down"
    way = {"ssh": "SSH", "folder": "folder", "github": "GitHub", "rappd": "rappd"}.get(row["way"], "not yet")
    user = f"{row['ssh_user']}@" if row["ssh_user"] else ""
    where = {
        "ssh": f"{user}{row['ssh_host']}",
        "folder": row["folder"],
        "github": row["github_neighborhood"],
    }.get(row["way"], row["address"] or row["url"])
    return [strip_control(text) for text in (row["name"], known, "-" if row["self"] else way, where)]


def _show_probes(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        _show_probe(row)
    if not rows:
        print_out("No other machine is known.")


def _show_probe(row: dict[str, Any]) -> None:
    name, probe = strip_control(row["name"]), row["probe"]
    if not probe["reachable"]:
        why = strip_control(probe["detail"]).removeprefix(f"{name}: ")
        print_out(f"{status_mark('bad')} {name}: {why}")
        return
    details = [strip_control(probe["detail"])] if probe["detail"] else []
    if "twins" in probe:
        details.append(count(int(probe["twins"]), "twin"))
    if probe["free_bytes"] >= 0:
        details.append(f"{format_bytes(probe['free_bytes'])} free")
    if not row["self"]:
        details.append(
            f"rappd {strip_control(probe['rappd_version'])}" if probe["rappd_version"] else "no rappd"
        )
        details.append(f"{probe['took_ms']:.0f} ms")
    print_out(f"{status_mark('good')} {name}: {', '.join(details)}")
    for one in probe.get("unread", ()):
        reason = f"{one['name']} cannot be read: {one['reason']}"
        print_out(f"  {status_mark('bad')} {wrapped(strip_control(reason), 4)}")
