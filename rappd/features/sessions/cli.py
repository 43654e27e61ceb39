"""``rappd sessions``: conversations that phones joined: see them, speak in them, start, branch and close them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated, Any, Literal

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.command_parameters import Argument, Option
from rappd.cli.completion_names import session_names
from rappd.cli.console import dim, print_out, print_status, status_mark, strip_control, wrapped
from rappd.cli.formatting import ago
from rappd.cli.printer import Printer
from rappd.cli.tables import Table, table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import ConfirmationNeededError
from rappd.features.threads.cli import write_export

_Session = Annotated[str, Argument(shell_complete=session_names)]
_Format = Annotated[
    Literal["jsonl", "markdown", "egg"],
    Option("--format", "--form", show_default=True, help="egg: a file that replays it."),
]
_ANSWER_SECONDS = 600.0

Row = dict[str, Any]

_InSession = Annotated[
    str, Option("--session", metavar="ID", shell_complete=session_names, help="In this session.")
]
_Yes = Annotated[bool, Option("--yes", help="Also over plain http, without asking.")]


@click.group(cls=SuggestingGroup)
def sessions() -> None:
    """Sessions with phones: list, show, open, say, invite, backend, branch, close.

    SESSION is the beginning of an id; without one, the session that was opened last.
    """


@sessions.command("list")
def list_(printer: Printer) -> None:
    """List sessions, the one opened last first."""
    found = ControlClient(Home.here()).do("sessions.list")
    printer.result(found, _SESSIONS, found["sessions"])


@sessions.command()
def show(printer: Printer, session: _Session = "current") -> None:
    """Show what was said."""
    found = _whole(ControlClient(Home.here()), session)
    printer.result(found, _show)


def _show(found: Row) -> None:
    row = found["session"]
    here = _here(row)
    print_out(f"{row['id']}  {dim(', '.join(filter(None, (_state(row), here and f'here: {here}'))))}")
    _print_events(found["events"])


@sessions.command("open")
@click.argument("what", default="", metavar="[SESSION|FILE]", shell_complete=session_names)
@click.option("--browser", is_flag=True, help="Show FILE in the browser.")
def open_(what: str, browser: bool, printer: Printer) -> None:
    """Start a new session, or go back to an older one; phones move there.

    With the FILE of a session egg, open it to replay it.
    """
    if _names_file(what):
        from rappd.features.sessions.eggs_cli import open_egg

        open_egg(Path(what), printer, browser=browser)
        return
    daemon = ControlClient(Home.here())
    row = daemon.do("sessions.reopen", id=what) if what else daemon.do("sessions.open")
    printer.result(row, _print_opened)


@sessions.command()
@click.option("--session", default="current", shell_complete=session_names, help="In this session.")
@click.option("--to", default="", metavar="NAME", help="Ask this twin; else the brainstem.")
def say(text: str, session: str, to: str, printer: Printer) -> None:
    """Ask in a session; everybody in it sees question and answer."""
    daemon = ControlClient(Home.here(), timeout=_ANSWER_SECONDS)
    before = daemon.do("sessions.show", id=session)["session"]
    reply = daemon.do("sessions.say", id=before["id"], text=text, to=to, wait=True)
    events = _whole(daemon, before["id"], before["count"])["events"]
    answers = [
        one for one in events if one["kind"] == "twin_response" and one["event_id"] == reply["event_id"]
    ]
    answer = answers[-1] if answers else None
    printer.result({**reply, "answer": answer}, _print_events, answers[-1:])
    if not answers or answers[-1].get("error"):
        raise click.exceptions.Exit(1)


@sessions.command()
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="A file; else stdout.")
@click.option("--allow", multiple=True, metavar="ID", help="Let a likely secret travel in the egg.")
@click.option("--force", is_flag=True, help="Replace the egg's file.")
def export(
    *,
    session: _Session = "current",
    form: _Format = "jsonl",
    output: Path | None,
    allow: tuple[str, ...],
    force: bool,
    printer: Printer,
) -> None:
    """Write a session as JSONL, Markdown, or an egg that replays it. Works with the daemon down.

    An egg goes to a file, without --output among the home's eggs.
    """
    if form == "egg":
        from rappd.features.sessions.eggs_cli import pack_session

        pack_session(session, output, printer, allow=allow, overwrite=force)
        return
    from rappd.sessions.recorded_sessions import OPENED, SESSION_CALLER, find_session, session_rows
    from rappd.store.reader import Reader

    with Reader(Home.here().database) as reader:
        rows = session_rows(reader.threads_by(SESSION_CALLER), reader.last_notes(SESSION_CALLER, OPENED))
        row = find_session(rows, "" if session == "current" else session)
        threads = reader.tree(row.thread)
        events = [event for one in threads for event in reader.thread_events(one.id)]
    write_export(threads[0], events, form, output, printer, session=row.id)


@sessions.command()
@click.option("--at", "at_seq", type=click.IntRange(min=0), help="After this event (show numbers them).")
def branch(*, session: _Session = "current", at_seq: int | None, printer: Printer) -> None:
    """Start a session with what was said so far; connected phones move there.

    SESSION may be the file of a session egg.
    """
    daemon = ControlClient(Home.here())
    if _names_file(session):
        from rappd.features.sessions.eggs_cli import taken_in

        egg = taken_in(daemon, Path(session))
        row = daemon.do("replays.branch", id=egg["id"], at_event=at_seq)
    else:
        row = daemon.do("sessions.branch", id=session, at_seq=at_seq or 0)
    printer.result(row, _print_opened)


@sessions.command()
def close(printer: Printer, session: _Session = "current") -> None:
    """Take no further sentences in a session."""
    row = ControlClient(Home.here()).do("sessions.close", id=session)
    printer.done(row, f"Session {row['id'][:8]} is closed.", "To go on in a new one: `rappd sessions open`")


@sessions.command()
def invite(
    printer: Printer, name: str | None = None, session: _InSession = "current", yes: _Yes = False
) -> None:
    """Let another machine answer in a session: AGENT@PEER, PEER, or a published brainstem. Without NAME: list them.

    Only what is paired or written down; never an address.
    """
    daemon = ControlClient(Home.here())
    if name is None:
        printer.result(daemon.do("sessions.participants", id=session), _show_guests)
        return
    _check_protected(daemon, session, name, printer, yes=yes)
    found = daemon.do("sessions.invite", id=session, name=name)
    printer.done(
        found, f"{strip_control(name)} answers in session {found['session'][:8]} when it is addressed."
    )


@sessions.command()
def uninvite(name: str, printer: Printer, session: _InSession = "current") -> None:
    """End an invitation."""
    found = ControlClient(Home.here()).do("sessions.uninvite", id=session, name=name)
    printer.done(found, f"{strip_control(name)} answers no more in session {found['session'][:8]}.")


@sessions.command()
def backend(
    printer: Printer, name: str | None = None, session: _InSession = "current", yes: _Yes = False
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


def _show_guests(found: Row) -> None:
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


def _whole(daemon: ControlClient, session: str, after: int = 0) -> Row:
    found = daemon.do("sessions.show", id=session, after=after)
    page = found
    while page["more"]:
        page = daemon.do("sessions.show", id=found["session"]["id"], after=page["last_seq"])
        found["events"] += page["events"]
    return {key: value for key, value in found.items() if key not in ("last_seq", "more")}


def _print_opened(row: Row) -> None:
    here = _here(row)
    where = f"; here: {here}." if here else "."
    if row["closed"]:
        print_status(
            "note", f"Phones see session {row['id'][:8]}{where} It was closed: nobody can write.",
            f"To go on with it in a new one: `rappd sessions branch {row['id'][:8]}`",
        )  # fmt: skip
        return
    print_status("good", f"Session {row['id'][:8]} is open{where}")


def _print_events(events: list[Row]) -> None:
    for event in events:
        _print_event(event)


def _print_event(event: Row) -> None:
    at = time.strftime("%H:%M:%S", time.localtime(event["at"] / 1000))
    lead = f"{event['seq']:>5}  {at}  {strip_control(event['by'])[:12]:<12}  "
    text = strip_control(event["text"])
    if event["kind"] == "tool_dispatch":
        print_out(dim(f"{lead}uses {text}"))
    elif event.get("error"):
        sentence = " ".join(filter(None, (text, event["do"])))
        print_out(f"{lead}{status_mark('bad')} {wrapped(sentence, len(lead) + 2)}")
    elif event["kind"] in ("operator_input", "twin_response"):
        print_out(f"{lead}{wrapped(text, len(lead))}")
    else:
        print_out(dim(f"{lead}{wrapped(text or event['kind'].replace('_', ' '), len(lead))}"))


def _names_file(text: str) -> bool:
    return "/" in text or "." in text


def _here(row: Row) -> str:
    return ", ".join(strip_control(name) for name in row["here"])


def _state(row: Row) -> str:
    if row["closed"]:
        return "closed"
    return "open, phones join" if row["current"] else "open"


_SESSIONS = Table(
    ("SESSION", lambda row: row["id"][:8]),
    ("STATE", _state),
    ("HERE", lambda row: _here(row) or "nobody"),
    ("EVENTS", "count"),
    ("LAST", lambda row: ago(time.time() - row["updated"] / 1e6)),
    none=("No phone has talked yet. ", "rappd pair"),
    shrink=2,
    whole=(0,),
)
