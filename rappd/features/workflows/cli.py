"""``rappd workflows``: steps that participants of a session are asked one after the other."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from agents.storage.text_file import SAVE_AS_UTF8, NotUtf8Error, decode
from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import arrow, command, print_err, print_out, print_status, strip_control
from rappd.cli.printer import JSON, Printer
from rappd.cli.tables import Table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import ConfirmationNeededError, UsageProblemError
from rappd.sessions.errors import WorkflowError

_SESSION = click.option("--session", metavar="ID", default="", help="Another session than the one used last.")
_MOST_BYTES = 64 << 10

Row = dict[str, Any]


@click.group(cls=SuggestingGroup)
def workflows() -> None:
    """Workflows in a session: list, show, approve, run, pause, resume, abort."""


@workflows.command("list")
def list_(printer: Printer) -> None:
    """List workflows, and what runs."""
    found = ControlClient(Home.here()).do("workflows.list")
    printer.result(found, _show_list)


def _show_list(found: Row) -> None:
    _WORKFLOWS(found["workflows"])
    for one in found["workflows"]:
        if one["problem"]:
            print_status("bad", _plain(one["problem"]["error"]), _plain(one["problem"]["do"]))
        elif one["foreign"]:
            print_status("note", _foreign(one), f"rappd workflows approve {shlex.quote(_plain(one['name']))}")
    for one in found["runs"]:
        print_out(f"{_plain(one['title'])}: {_position(one)}")


@workflows.command()
def show(name: str, printer: Printer) -> None:
    """Show the steps of a workflow."""
    row = ControlClient(Home.here()).do("workflows.show", name=name)
    printer.result(row, _show)


def _show(row: Row) -> None:
    print_out(f"{_plain(row['title'])}, {_origin(row)}, {row['path']}")
    if row["problem"]:
        print_status("bad", _plain(row["problem"]["error"]), _plain(row["problem"]["do"]))
        return
    if row["foreign"]:
        print_status("note", _foreign(row), f"rappd workflows approve {shlex.quote(_plain(row['name']))}")
    _print_steps(row["workflow"])


@workflows.command()
@click.option("--yes", is_flag=True, help="Approve without a question.")
def approve(name: str, yes: bool, printer: Printer) -> None:
    """Let a foreign workflow run, exactly as it is now. It is shown first."""
    daemon = ControlClient(Home.here())
    row = daemon.do("workflows.show", name=name)
    if row["problem"]:
        raise WorkflowError(_plain(row["problem"]["error"]), do=_plain(row["problem"]["do"]))
    if row["foreign"] and not yes:
        if printer.asks:
            print_err(_foreign(row))
            _print_steps(row["workflow"])
        undone = f"{_foreign(row)} Nothing was approved."
        if not printer.confirm("Let exactly this run?", undone, do="Read it, then add --yes."):
            raise ConfirmationNeededError("Nothing was approved.", do="rappd workflows list")
    found = daemon.do("workflows.approve", name=name, sha256=row["sha256"])
    printer.done(
        found, f"{_plain(found['title'])} may run.", f"rappd workflows run {shlex.quote(_plain(name))}"
    )


def _foreign(row: Row) -> str:
    whose = f" in {_plain(row['twin'])}" if row["twin"] else ""
    came = f" It came in {_plain(row['origin'])}." if row["origin"] else ""
    return f"{_plain(row['path'])}{whose} is foreign: {_plain(row['foreign'])}{came}"


def _print_steps(found: Row) -> None:
    if found["about"]:
        print_out(_plain(found["about"]))
    plays = {one["name"]: one["plays"] for one in found["participants"]}
    for number, step in enumerate(found["steps"], 1):
        who = plays[step["participant"]]
        print_out(f"{number}. {_plain(step['participant'])}{f' (played by {_plain(who)})' if who else ''}")
        print_out(f"   {_plain(' '.join(step['cue'].split()))}")


@workflows.command()
@click.option("--file", "files", metavar="NAME=PATH", multiple=True, help="A text in place of one of its files.")  # fmt: skip
@click.option(
    "--text", "texts", metavar="NAME=WORDS", multiple=True, help="The same, as words: what it is about."
)
@click.option(
    "--play",
    "plays",
    metavar="NAME=WHO",
    multiple=True,
    help="Who plays a participant: a twin, a paired machine, or Ink@pi.",
)
@_SESSION
def run(
    name: str,
    files: tuple[str, ...],
    texts: tuple[str, ...],
    plays: tuple[str, ...],
    session: str,
    printer: Printer,
) -> None:
    """Start a workflow; its answers come in the session."""
    given = dict(_text(one) for one in files) | dict(_pair(one, "--text story=WORDS") for one in texts)
    body: Row = {
        "session": session,
        "files": given,
        "plays": dict(_pair(one, "--play Editor=Rose") for one in plays),
    }
    row = ControlClient(Home.here()).do("workflows.run", name=name, **body)["run"]
    printer.result({"run": row}, _show_asked, row, f"{_plain(row['title'])} runs: {_position(row)}")


def _show_asked(row: Row, what: str) -> None:
    print_status("good", what)
    print_out(f"{arrow()} {command('rappd sessions show ' + row['session'][:8])}")


def _control(action: str, about: str) -> None:
    """Adds the command that controls what runs in a session."""

    def control(session: str, printer: Printer) -> None:
        row = ControlClient(Home.here()).do("workflows.control", action=action, session=session)["run"]
        printer.done({"run": row}, f"{_plain(row['title'])}: {_position(row)}")

    workflows.command(action, help=about)(_SESSION(JSON(control)))


_control("pause", "Ask no further step; the answer under way still comes.")
_control("resume", "Go on with the step that is not answered.")
_control("abort", "End it; the turn under way is stopped.")


@workflows.command()
@click.option("--to", default="", metavar="NAME", help="A twin; without it, the brainstem.")
@_SESSION
def interrupt(text: str, to: str, session: str, printer: Printer) -> None:
    """Ask TEXT at once; a running workflow waits and goes on afterwards."""
    row = ControlClient(Home.here()).do("sessions.say", id=session or "current", text=text, to=to, via="mic")  # fmt: skip
    printer.result(row, _show_asked, row, "Asked.")


def _pair(option: str, example: str) -> tuple[str, str]:
    name, equals, value = option.partition("=")
    if not equals or not name or not value.strip():
        raise UsageProblemError(f'"{option[:80]}" is not NAME=….', do=example)
    return name, value


def _text(option: str) -> tuple[str, str]:
    name, equals, path = option.partition("=")
    if not equals or not name or not path:
        raise UsageProblemError(f'"{option[:80]}" names no file.', do="--file story=PATH")
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise UsageProblemError(
            f"{path} cannot be read: {error.strerror}.", do="Name another file."
        ) from None
    if len(content) > _MOST_BYTES:
        raise UsageProblemError(f"{path} is longer than 64 KiB.", do="Name a shorter file.")
    try:
        return name, decode(content).text
    except NotUtf8Error as error:
        raise UsageProblemError(f"{path} {error}.", do=SAVE_AS_UTF8) from error


def _position(row: Row) -> str:
    who = f" · {_plain(row['participant'])}" if row["participant"] else ""
    return f"{row['status']}, step {row['step']} of {row['steps']}{who}"


def _origin(row: Row) -> str:
    if row["foreign"]:
        return "foreign"
    if row["problem"]:
        return "cannot run"
    if row["twin"]:
        return "a twin's"
    return "shipped" if row["shipped"] else "yours"


def _plain(text: str) -> str:
    return strip_control(str(text))


_WORKFLOWS = Table(("NAME", "name"), ("STEPS", "steps"), ("STATE", _origin), ("TITLE", "title"), shrink=3)
