"""``rappd peers``: list, show, pair, rename, scopes, offer, revoke, add, forget."""

from __future__ import annotations

import shlex
from typing import Annotated, Any, Literal

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.command_parameters import Argument
from rappd.cli.completion_names import peer_names
from rappd.cli.console import arrow, command, print_err, print_out, print_status, status_mark, strip_control
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.cli.tables import Table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import ConfirmationNeededError, UsageProblemError
from rappd.features.peers.pairing import pair
from rappd.features.peers.text import called, may_here, show_peer, show_peers

_Peer = Annotated[str, Argument(shell_complete=peer_names)]

_WHOSE = {"mine": ["*"], "friend": ["EGG"]}

_TALK = "HELP.brainstem"


@click.group(cls=SuggestingGroup)
def peers() -> None:
    """Other machines: see, pair, share, revoke.

    PEER is a peer's name, or the first four or more digits of its key.
    """


@peers.command("list")
def list_(printer: Printer) -> None:
    """Paired machines, found ones, and who asks to be paired."""
    found = HomeClient(Home.here(), reads=True).do("peers.list")
    printer.result(found, show_peers)


@peers.command()
def show(peer: _Peer, printer: Printer) -> None:
    """One peer: how it is, what it may do here, what may be used of it."""
    found = HomeClient(Home.here(), reads=True).do("peers.show", peer=peer)
    printer.result(found, show_peer, found["peer"])


@peers.command()
@click.argument("new_name", metavar="NEW")
def rename(peer: _Peer, new_name: str, printer: Printer) -> None:
    """Call a peer something else here; who it is stays."""
    found = ControlClient(Home.here()).do("peers.rename", peer=peer, name=new_name)
    _done(found, f"It is {found['peer']['name']} here now.", printer)


@peers.command()
def note(peer: _Peer, text: tuple[str, ...], printer: Printer) -> None:
    """Keep a line of TEXT about a peer; without TEXT, forget it. Nobody is told."""
    found = ControlClient(Home.here()).do("peers.note", peer=peer, text=" ".join(text))
    done = f"Kept about {found['peer']['name']}: {found['peer']['note']}" if text else "The note is gone."
    _done(found, done, printer)


@peers.command()
@click.argument("given", nargs=-1, metavar="[CAPABILITY]... | mine | friend")
@click.option("--add", "how", flag_value="add", help="Share these, too.")
@click.option("--remove", "how", flag_value="remove", help="Share these no longer.")
def scopes(peer: _Peer, given: tuple[str, ...], how: str | None, printer: Printer) -> None:
    """Show or change what a peer may do here.

    A change counts from its next request on.
    HELP.brainstem.Clock is one agent, HELP.brainstem a talk, HELP.brainstem.* both and every agent,
    EGG sending eggs, SNAPSHOT reading every twin. "mine" is everything, "friend" only eggs.
    """
    daemon = ControlClient(Home.here())
    if not given and how:
        raise UsageProblemError(
            f"--{how} needs a CAPABILITY.", do=f"rappd peers scopes {peer} --{how} HELP.brainstem"
        )
    found = daemon.do("peers.show", peer=peer)
    if given:
        chosen = [one for word in given for one in _WHOSE.get(word.lower(), [word])]
        granted = list(found["peer"]["scopes"])
        wanted = (
            [*granted, *chosen]
            if how == "add"
            else [one for one in granted if one not in chosen]
            if how
            else chosen
        )
        absent = [one for one in chosen if one not in granted] if how == "remove" else []
        if absent:
            raise UsageProblemError(
                f"{found['peer']['name']} has no {absent[0]} by itself.",
                do=f"`rappd peers scopes {peer}` shows what it has.",
            )
        found = daemon.do("peers.scopes", peer=peer, scopes=list(dict.fromkeys(wanted)))
    printer.result({"peer": found["peer"]}, _show_scopes, found["peer"], given, how)


def _show_scopes(row: dict[str, Any], given: tuple[str, ...], how: str | None) -> None:
    done = f"{status_mark('good')} " if given else ""
    print_out(f"{done}{row['name']} may {may_here(row)}.")
    for one in row["scopes"]:
        print_out(f"  {strip_control(one)}")
    if given and how != "remove" and "SNAPSHOT" in row["scopes"] and row["whose"] == "friend":
        print_status(
            "note",
            "A snapshot there takes its owner's machines alone, a friend's only where it is named",
            "there: rappd neighborhood snapshot --only NAME",
        )


@peers.command()
def offer(peer: _Peer, state: Literal["on", "off"], printer: Printer) -> None:
    """Let the brainstem here use a peer's agents as its own, or not."""
    found = ControlClient(Home.here()).do("peers.offer", peer=peer, on=state == "on")
    name = found["peer"]["name"]
    what = f"The brainstem here {'may use' if state == 'on' else 'uses none of'} {name}'s agents."
    _done(found, what, printer)


@peers.command()
@click.option("--yes", is_flag=True, help="Do not ask.")
def revoke(peer: _Peer, yes: bool, printer: Printer) -> int:
    """End the trust in a peer, at once."""
    daemon = ControlClient(Home.here())
    row = daemon.do("peers.show", peer=peer)["peer"]
    name = row["name"]
    if not yes:
        waits = " What waits for it is never delivered." if row.get("waiting") else ""
        question = f"End the trust in {name} ({row['short']})?{waits}"
        if not printer.confirm(question, f"The trust in {name} would end; nothing was done."):
            print_err("Nothing was done.")
            return ConfirmationNeededError.exit_code
    found = daemon.do("peers.revoke", peer=row["fingerprint"])  # the very one that was shown
    printer.sentence(
        found, f"{name} is not trusted any more. To be forgotten there, too, revoke this one there."
    )
    return 0


@peers.command()
def add(address: str, printer: Printer) -> None:
    """Write down where a machine is: HOST or HOST:PORT, or the URL of an agent card. It is not trusted by that."""
    if "://" not in address:
        from neighborhoods.discovery.address_text import split

        split(address)
    daemon = ControlClient(Home.here())
    with progress(f"Looking for a machine at {address}…"):
        found = daemon.do("peers.add", address=address)
    printer.result(found, _show_added, found["added"])


def _show_added(added: dict[str, Any]) -> None:
    if added["legacy"]:
        name = strip_control(added["name"])
        who = f"{name}, an A2A agent, is written down: {added['address']}"
        if added["kind"] != "agent" or not name:
            who = f"{added['address']} is written down."
        plain = added["address"].startswith("http://")
        print_status("good", f"{who} It speaks plain http: others can read what is said." if plain else who)
        if added["kind"] == "agent" and name:
            print_out(f"  {arrow()} {command(f'rappd call {shlex.quote(name)} …')}")
    elif added["name"]:
        name = called(added["name"], added["fingerprint"])
        print_out(
            f"{status_mark('good')} {strip_control(added['name'])} ({added['fingerprint'][:4]}) answers at {added['address']}"
        )
        print_out(f"  {arrow()} {command(f'rappd peers pair {name}')}")
    elif added["other"]:
        print_status(
            "note",
            f"{added['address']} is written down; what answers there is no rappd.",
            f"another port? rappd peers forget {added['address']}",
        )
    else:
        print_status(
            "note", f"{added['address']} is written down; nobody answers there yet.", "start rappd there"
        )


@peers.command()
def forget(address: str, printer: Printer) -> None:
    """Take a written-down address out again. Trust stays as it is."""
    found = ControlClient(Home.here()).do("peers.forget", address=address)
    printer.sentence(found, f"{strip_control(address)} is not written down any more.")


def _done(found: dict[str, Any], what: str, printer: Printer) -> None:
    printer.sentence({"peer": found["peer"]}, what)


@peers.group(cls=SuggestingGroup)
def legacy() -> None:
    """An unencrypted listener for published brainstems: open, show, close."""


@legacy.command("open")
@click.argument("addresses", nargs=-1, required=True, metavar="ADDRESS...")
@click.option(
    "--may", multiple=True, metavar="CAPABILITY", help="An agent they may use, as HELP.brainstem.Clock."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def open_legacy(addresses: tuple[str, ...], may: tuple[str, ...], yes: bool, printer: Printer) -> int:
    """Let published brainstems at these addresses talk here, over plain http.

    They may chat, and use no agent but those named. Others on the network can read what is said.
    """
    daemon = ControlClient(Home.here())
    if not yes:
        daemon.do("legacy.show")  # nobody is asked for nothing
        who = ", ".join(strip_control(one) for one in addresses)
        question = f"Talk with {who} goes over plain http: others can read what is said. Open?"
        if not printer.confirm(question, f"Talk with {who} would go over plain http; nothing was opened."):
            print_err("Nothing was opened.")
            return ConfirmationNeededError.exit_code
    found = daemon.do("legacy.open", addresses=list(addresses), scopes=list(may))
    printer.result(found, _show_legacy, found["legacy"])
    return 0


@legacy.command("show")
def show_legacy(printer: Printer) -> None:
    """Show its state, addresses and allowed callers."""
    found = ControlClient(Home.here()).do("legacy.show")
    printer.result(found, _show_legacy, found["legacy"])


@legacy.command("close")
def close_legacy(printer: Printer) -> None:
    """Close it, for good."""
    found = ControlClient(Home.here()).do("legacy.close")
    printer.result(found, _show_legacy, found["legacy"])


@peers.command()
def hello(printer: Printer) -> int:
    """Say hello to every peer; shows who answers, and how fast."""
    with progress("Saying hello…"):
        found = ControlClient(Home.here()).do("peers.hello")
    rows = found["hello"]
    printer.result(found, _GREETED, rows)
    answered = sum(row["answered"] for row in rows)
    return 0 if answered == len(rows) else 7 if answered else 1


def _heard(row: dict[str, Any]) -> str:
    return f"{max(1, round(row['ms']))} ms" if row["answered"] else str(row["trouble"]).rstrip(".")


_GREETED = Table(
    ("PEER", "name"),
    ("ANSWER", _heard),
    ("AGENTS", lambda row: row["agents"] if row["answered"] else "-"),
    mark=lambda row: "good" if row["answered"] else "bad",
    none=("No machine is paired with this one.", ""),
    shrink=1,
)


def _show_legacy(row: dict[str, Any]) -> None:
    if not row["addresses"]:
        print_out("The legacy listener is closed.")
        return
    if row["open"]:
        print_out(
            f"{status_mark('good')} Open at {', '.join(row['listening'])}, plain http: others can read what is said."
        )
    else:
        print_status("note", f"It should be open, and is not: {row.get('trouble') or 'rappd is starting.'}")
    agents = [one.rpartition(".")[2] for one in row["scopes"] if one != _TALK]
    print_out(f"  For   {strip_control(', '.join(row['addresses']))}")
    used = f", and use {strip_control(', '.join(agents))}" if agents else ", and use no agent"
    print_out(f"  They  may chat{used}")


peers.add_command(pair)
