"""``rappd threads verify``, ``witness`` and ``accept``: the event log against its anchors."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

import click

from rappd.cli.command_parameters import cli_command
from rappd.cli.console import (
    command,
    dim,
    print_err,
    print_out,
    print_status,
    status_mark,
    strip_control,
    wrapped,
)
from rappd.cli.formatting import ago, count
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.cli.tables import Table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import ConfirmationNeededError, NotFoundError

if TYPE_CHECKING:
    from rappd.store.anchor_comparison import Anchored, AnchorProof, Witness
    from rappd.store.verify import VerifyReport

_SHOWN = 20  # problems that a screen lists


@cli_command()
@click.option("--peers", is_flag=True, help="Ask your other machines, too, which anchors they keep.")
def verify(peers: bool, printer: Printer) -> int:
    """Check that no event was changed, removed or put in, against the anchors that were signed."""
    from rappd.store.verify import verify as check

    home = Home.here()
    witnesses = _ask(home) if peers else []
    with progress() as shown:
        report = check(
            home.database,
            lambda done, total: shown(f"Checked {done:,} of {count(total, 'event')}…"),
            _proof(home, witnesses),
        )
    printer.result({"verify": report.as_json()}, _show_report, report, peers)
    return 0 if report.whole else 1


def _show_report(report: VerifyReport, peers: bool) -> None:
    if report.whole:
        what = f"{count(report.events, 'event')} in {count(report.threads, 'thread')}, none changed"
        print_out(f"{status_mark('good')} {wrapped(f'{what}; {_anchored(report)}.', 2)}")
    for problem in report.problems[:_SHOWN]:
        print_status("bad", str(problem))
    if report.anchored is not None:
        _more(report, report.anchored, peers=peers)
    if not report.whole:
        more = f", the first {_SHOWN} are shown" if report.found > _SHOWN else ""
        print_out(f"{count(report.found, 'problem')} in {count(report.events, 'event')}{more}.")


@cli_command()
@click.option("--forget", metavar="PEER", default="", help="Drop what is kept of PEER, evidence included.")
def witness(forget: str, printer: Printer) -> int:
    """Anchors of your other machines that this one keeps."""
    daemon = ControlClient(Home.here())
    if forget:
        done = daemon.do("anchors.forget", peer=forget)
        printer.result(
            done,
            print_err,
            f"{status_mark('good', sys.stderr)} {count(done['forgotten'], 'anchor')} of {strip_control(forget)} dropped",
        )
        return 0
    kept: list[dict[str, Any]] = daemon.do("anchors.show")["kept"]
    printer.result({"kept": kept}, _show_kept, kept)
    return 1 if any(row["faults"] for row in kept) else 0


def _machine(row: dict[str, Any]) -> str:
    return str(row["name"] or row["fingerprint"][:16])


_KEPT = Table(
    ("MACHINE", _machine),
    ("ANCHORS", "anchors"),
    ("EVENTS", "events"),
    ("SIGNED", lambda row: ago(time.time() - row["at"] / 1e6)),
    mark=lambda row: "bad" if row["faults"] else "good",
    none=("No anchors of other machines are kept here.", ""),
)


def _show_kept(kept: list[dict[str, Any]]) -> None:
    _KEPT(kept)
    for row in kept:
        for fault in row["faults"]:
            print_status("bad", f"{_machine(row)}: anchor {fault['counter']} came {fault['what']}")


@cli_command()
@click.option("--yes", is_flag=True, help="Sign without asking.")
def accept(yes: bool, printer: Printer) -> int:
    """Sign the event log as it is now, although it differs from what was signed. With rappd stopped."""
    from rappd.store.anchor_signing import Anchorer
    from rappd.store.reader import Reader

    home = Home.here()
    if not home.database.exists():
        raise NotFoundError("There is no event log here yet.", do="rappd start")
    undone = "What differs is not looked at again once it is accepted."
    if not yes and not printer.confirm(f"{undone} Sign it?", undone, do="Add --yes, if you know why."):
        return ConfirmationNeededError.exit_code
    home_lock = home.hold()
    try:
        Reader(home.database).close()  # carries over what a killed daemon left
        anchorer = Anchorer(home.database, home.identity())
        try:
            report = anchorer.accept()
        finally:
            anchorer.close()
    finally:
        home_lock.release()
    printer.sentence({"anchor": report.as_json()}, f"{count(report.events, 'event')} signed as they are.")
    return 0


def _proof(home: Home, witnesses: list[Witness]) -> AnchorProof | None:
    """None where there is no key yet, so that nothing was signed."""
    from rappd.store.anchor_comparison import AnchorProof

    if not home.has_identity():
        return None
    return AnchorProof(home.database, home.identity().public, witnesses)


def _ask(home: Home) -> list[Witness]:
    from rappd.store.anchor_comparison import Witness

    answers = ControlClient(home).do("anchors.ask")["witnesses"]
    return [
        Witness(str(one["name"]), [(body, fault) for body, fault in one["anchors"]], str(one["trouble"]))
        for one in answers
    ]


def _anchored(report: VerifyReport) -> str:
    anchored = report.anchored
    if anchored is None or anchored.newest is None:
        return "not anchored yet"
    newest = anchored.newest
    text = f"anchored up to event {newest.events}, signed {ago(time.time() - newest.at / 1e6)}"
    if anchored.unanchored:
        text += f", {anchored.unanchored} not anchored yet"
    names = [strip_control(one.name) for one in anchored.witnesses if not one.trouble]
    return f"{text}; witnesses: {', '.join(names)}" if names else text


def _more(report: VerifyReport, anchored: Anchored, *, peers: bool) -> None:
    since = anchored.since
    if since is not None:
        day = time.strftime("%d %b %Y", time.localtime(since.at / 1e6)).lstrip("0")
        if since.note in ("restored", "accepted"):
            how = (
                "The home was restored from a backup"
                if since.note == "restored"
                else "It was accepted as it is"
            )
            text = f"{how} on {day}: what was signed before is not compared."
            print_out(f"{status_mark('note')} {wrapped(text, 2)}")
        elif report.whole:
            print_out(dim(f"  Anchored since {day}."))
    for one in anchored.witnesses:
        if one.trouble:
            print_out(
                f"{status_mark('note')} {wrapped(f'{strip_control(one.name)} {strip_control(one.trouble)}', 2)}"
            )
    if peers and not anchored.witnesses:
        print_out(f"{status_mark('note')} No machine of yours is paired: {command('rappd peers pair')}")
