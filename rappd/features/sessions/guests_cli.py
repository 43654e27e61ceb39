"""``rappd sessions invite | uninvite | backend``: who else answers in a session, and who answers without being named."""

from __future__ import annotations

from typing import Annotated, Any

from rappd.cli.command_parameters import Option, cli_command
from rappd.cli.completion_names import session_names
from rappd.cli.console import print_out, strip_control
from rappd.cli.printer import Printer
from rappd.cli.tables import table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import ConfirmationNeededError

_Session = Annotated[
    str, Option("--session", metavar="ID", shell_complete=session_names, help="In this session.")
]
_Yes = Annotated[bool, Option("--yes", help="Also over plain http, without asking.")]

Row = dict[str, Any]


@cli_command()
def invite(
    printer: Printer, name: str | None = None, session: _Session = "current", yes: _Yes = False
) -> None:
    """Let another machine answer in a session: AGENT@PEER, PEER, or a published brainstem. Without NAME: list them.

    Only what is paired or written down; never an address.
    """
    daemon = ControlClient(Home.here())
    if name is None:
        printer.result(daemon.do("sessions.participants", id=session), _show)
        return
    _check_protected(daemon, session, name, printer, yes=yes)
    found = daemon.do("sessions.invite", id=session, name=name)
    printer.done(
        found, f"{strip_control(name)} answers in session {found['session'][:8]} when it is addressed."
    )


@cli_command()
def uninvite(name: str, printer: Printer, session: _Session = "current") -> None:
    """End an invitation."""
    found = ControlClient(Home.here()).do("sessions.uninvite", id=session, name=name)
    printer.done(found, f"{strip_control(name)} answers no more in session {found['session'][:8]}.")


@cli_command()
def backend(
    printer: Printer, name: str | None = None, session: _Session = "current", yes: _Yes = False
) -> None:
    """Choose who answers what is addressed to nobody: a twin, PEER, AGENT@PEER; `brainstem` for your own.

    Without NAME: show it.
    """
    daemon = ControlClient(Home.here())
    if name is None:
        found = daemon.do("sessions.participants", id=session)
    else:
        _check_protected(daemon, session, name, printer, yes=yes)
        own = "" if name.casefold() == "brainstem" else name
        found = daemon.do("sessions.backend", id=session, name=own)
    printer.done(found, f"{strip_control(found['backend'])} answers in session {found['session'][:8]}.")


def _show(found: Row) -> None:
    rows = [
        (strip_control(one["name"]), one["role"], one.get("presence", "here"))
        for one in found["participants"]
    ]
    here = {one["name"] for one in found["participants"]}
    rows += [
        (strip_control(one["name"]), "agent" if "@" in one["name"] else "machine", "could be invited")
        for one in found["possible"]
        if one["name"] not in here
    ]
    table(("NAME", "KIND", "PRESENCE"), rows, shrink=0)
    print_out(f"{strip_control(found['backend'])} answers what is addressed to nobody.")


def _check_protected(daemon: ControlClient, session: str, name: str, printer: Printer, *, yes: bool) -> None:
    """Asks before what is said goes over plain http. Raises ``ConfirmationNeededError``."""
    possible = daemon.do("sessions.participants", id=session)["possible"]
    plain = any(one["plain"] and one["name"] == name.casefold() for one in possible)
    if not plain or yes:
        return
    question = f"{strip_control(name)} speaks plain http: others on the way can read what is said."
    undone = f"{question} Nothing was changed."
    if not printer.confirm(f"{question} Invite?", undone):
        raise ConfirmationNeededError(undone, do="Add --yes.")
