"""``rappd workflows``: steps that participants of a session are asked one after the other."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from agents.storage.text_file import SAVE_AS_UTF8, NotUtf8Error, decode
from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import (
    arrow,
    command,
    interactive,
    print_err,
    print_json,
    print_out,
    print_status,
    strip_control,
)
from rappd.cli.tables import table
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import ConfirmationNeededError, UsageProblemError
from rappd.sessions.workflows.errors import WorkflowError

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_SESSION = click.option("--session", metavar="ID", default="", help="Another session than the one used last.")
_MOST_BYTES = 64 << 10

Row = dict[str, Any]


@click.group(cls=SuggestingGroup)
def workflows() -> None:
    """Workflows in a session: list, show, approve, run, pause, resume, abort."""


@workflows.command("list")
@_JSON
def list_(as_json: bool) -> None:
    """List workflows, and what runs."""
    found = ControlClient(Home.here()).do("workflows.list")
    if as_json:
        print_json(found)
        return
    rows = [(one["name"], str(one["steps"]), _origin(one), _plain(one["title"])) for one in found["workflows"]]  # fmt: skip
    table(("NAME", "STEPS", "STATE", "TITLE"), rows, shrink=3)
    for one in found["workflows"]:
        if one["problem"]:
            print_status("bad", _plain(one["problem"]["error"]), _plain(one["problem"]["do"]))
        elif one["foreign"]:
            print_status("note", _foreign(one), f"rappd workflows approve {shlex.quote(_plain(one['name']))}")
    for one in found["runs"]:
        print_out(f"{_plain(one['title'])}: {_position(one)}")


@workflows.command()
@click.argument("name")
@_JSON
def show(name: str, as_json: bool) -> None:
    """Show the steps of a workflow."""
    row = ControlClient(Home.here()).do("workflows.show", name=name)
    if as_json:
        print_json(row)
        return
    print_out(f"{_plain(row['title'])}, {_origin(row)}, {row['path']}")
    if row["problem"]:
        print_status("bad", _plain(row["problem"]["error"]), _plain(row["problem"]["do"]))
        return
    if row["foreign"]:
        print_status("note", _foreign(row), f"rappd workflows approve {shlex.quote(_plain(name))}")
    _print_steps(row["workflow"])


@workflows.command()
@click.argument("name")
@click.option("--yes", is_flag=True, help="Approve without a question.")
@_JSON
def approve(name: str, yes: bool, as_json: bool) -> None:
    """Let a foreign workflow run, exactly as it is now. It is shown first."""
    daemon = ControlClient(Home.here())
    row = daemon.do("workflows.show", name=name)
    if row["problem"]:
        raise WorkflowError(_plain(row["problem"]["error"]), do=_plain(row["problem"]["do"]))
    if row["foreign"] and not yes:
        if as_json or not interactive():
            raise ConfirmationNeededError(
                f"{_foreign(row)} Nothing was approved.", do="Read it, then add --yes."
            )
        print_err(_foreign(row))
        _print_steps(row["workflow"])
        if not click.confirm("Let exactly this run?", default=False, err=True):
            raise ConfirmationNeededError("Nothing was approved.", do="rappd workflows list")
    found = daemon.do("workflows.approve", name=name, sha256=row["sha256"])
    if as_json:
        print_json(found)
        return
    print_status(
        "good", f"{_plain(found['title'])} may run.", f"rappd workflows run {shlex.quote(_plain(name))}"
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
@click.argument("name")
@click.option("--file", "files", metavar="NAME=PATH", multiple=True, help="A text in place of one of its files.")  # fmt: skip
@_SESSION
@_JSON
def run(name: str, files: tuple[str, ...], session: str, as_json: bool) -> None:
    """Start a workflow; its answers come in the session."""
    body: Row = {"session": session, "files": dict(_text(one) for one in files)}
    row = ControlClient(Home.here()).do("workflows.run", name=name, **body)["run"]
    if as_json:
        print_json({"run": row})
        return
    print_status("good", f"{_plain(row['title'])} runs: {_position(row)}")
    print_out(f"{arrow()} {command('rappd sessions show ' + row['session'][:8])}")


@workflows.command()
@_SESSION
@_JSON
def pause(session: str, as_json: bool) -> None:
    """Ask no further step; the answer under way still comes."""
    _control("pause", session, as_json)


@workflows.command()
@_SESSION
@_JSON
def resume(session: str, as_json: bool) -> None:
    """Go on with the step that is not answered."""
    _control("resume", session, as_json)


@workflows.command()
@_SESSION
@_JSON
def abort(session: str, as_json: bool) -> None:
    """End it; the turn under way is stopped."""
    _control("abort", session, as_json)


@workflows.command()
@click.argument("text")
@click.option("--to", default="", metavar="NAME", help="A twin; without it, the brainstem.")
@_SESSION
@_JSON
def interrupt(text: str, to: str, session: str, as_json: bool) -> None:
    """Ask TEXT at once; a running workflow waits and goes on afterwards."""
    row = ControlClient(Home.here()).do("sessions.say", id=session or "current", text=text, to=to, via="mic")  # fmt: skip
    if as_json:
        print_json(row)
        return
    print_status("good", "Asked.")
    print_out(f"{arrow()} {command('rappd sessions show ' + row['session'][:8])}")


def _control(action: str, session: str, as_json: bool) -> None:
    row = ControlClient(Home.here()).do("workflows.control", action=action, session=session)["run"]
    if as_json:
        print_json({"run": row})
        return
    print_status("good", f"{_plain(row['title'])}: {_position(row)}")


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
