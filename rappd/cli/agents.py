"""``rappd agents``: list, add, remove, undo, new, test, run, approve."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from rappd.cli.agent_view import (
    agent_rows,
    failed,
    file_in,
    file_of,
    no_agent,
    run_tests,
    show_rows,
    show_tests,
)
from rappd.cli.approve import approve
from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import (
    arrow,
    command,
    dim,
    print_error,
    print_json,
    print_out,
    status_mark,
    strip_control,
)
from rappd.cli.formatting import tilde
from rappd.cli.names import agent_names
from rappd.cli.progress import progress
from rappd.control_client import ControlClient, ResponseError
from rappd.daemon.home import Home
from rappd.errors import NotFoundError, UsageProblemError

if TYPE_CHECKING:
    from twins.workspace.agent_files import AgentFiles
    from twins.workspace.workspace import Workspace

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")
_AGENT = click.argument("name", shell_complete=agent_names)


@click.group(cls=SuggestingGroup)
def agents() -> None:
    """List, add, write, test, run and approve agents."""


@agents.command("list")
@_JSON
def list_(as_json: bool) -> None:
    """Every agent, and every file that has a fault."""
    home = Home.here()
    rows = agent_rows(home, ControlClient(home))
    if as_json:
        print_json({"agents": rows})
    else:
        show_rows(rows)


@agents.command()
@click.argument("file", type=click.Path(path_type=Path))
@_JSON
def add(file: Path, as_json: bool) -> None:
    """Take in an agent file; it is checked before it counts."""
    if not file.is_file():
        raise NotFoundError(f'No file "{file}".', do="rappd agents add PATH/weather_agent.py")
    home = Home.here()
    daemon = ControlClient(home)
    content = file.read_bytes()
    if daemon.running():
        found = daemon.upload("/agents/import", file.name, content)
    else:
        name = _place(home, file.name, content, "added")
        found = {"status": "ok", "file": name, "message": f"{name} is in place; it loads at the next start."}
    _report(found, as_json)


@agents.command()
@_AGENT
@_JSON
def remove(name: str, as_json: bool) -> None:
    """Take an agent's file out of service; it is kept and can be brought back."""
    home = Home.here()
    daemon = ControlClient(home)
    if daemon.running():
        found = daemon.delete(f"/agents/{quote(file_of(agent_rows(home, daemon), name))}")
    else:
        files = _files(home)
        file = _file_here(home, name)
        token = files.remove(file)
        found = {"status": "ok", "message": f"{file} is out of service.", "undo": token}
    _report(found, as_json)


@agents.command()
@click.argument("token")
@_JSON
def undo(token: str, as_json: bool) -> None:
    """Bring a removed file back; TOKEN is the code printed when you removed it."""
    home = Home.here()
    daemon = ControlClient(home)
    if daemon.running():
        found = daemon.post("/agents/undo", {"undo": token})
    else:
        name = _files(home).undo(token)
        found = {"status": "ok", "file": name, "message": f"{name} is back; it loads at the next start."}
    _report(found, as_json)


@agents.command()
@click.argument("name")
@click.argument("description", nargs=-1)
@_JSON
def new(name: str, description: tuple[str, ...], as_json: bool) -> None:
    """Write the beginning of a new agent: one file to fill in."""
    from agents.contract.scaffold import scaffold

    home = Home.here()
    filename, source = scaffold(name, " ".join(description))
    daemon = ControlClient(home)
    workspace = _workspace(home)
    if daemon.running():
        found = daemon.post("/agents/new", {"filename": filename, "source": source})
    else:
        from twins.errors import BadFileError

        if (workspace.agents / filename).exists():
            raise BadFileError(f"{filename} exists already.", do="choose another name")
        _place(home, filename, source.encode(), "new")
        found = {"status": "ok", "file": filename, "message": f"{filename} is written."}
    found["path"] = str(workspace.agents / found["file"])
    _report(found, as_json)
    if not as_json:
        print_out(f"  {arrow()} {tilde(found['path'])}")


@agents.command()
@_AGENT
@_JSON
def test(name: str, as_json: bool) -> int:
    """Run the contract tests over an agent, by its name, or over a file, by its path."""
    tests = run_tests(Home.here(), name)
    if as_json:
        print_json({"tests": tests})
    else:
        show_tests(tests)
    return 1 if any(map(failed, tests)) else 0


@agents.command()
@_AGENT
@click.argument("arguments", nargs=-1)
@_JSON
def run(name: str, arguments: tuple[str, ...], as_json: bool) -> int:
    """Run one agent: rappd agents run HackerNews count=5."""
    from agents.providers.offline.result_format import failure_of

    home = Home.here()
    daemon = ControlClient(home, timeout=600)
    body = {"agent": name, "args": _arguments(arguments)}
    with progress() as line:
        line(f"{name}…")
        try:
            found = daemon.post("/agents/run", body)
        except ResponseError as problem:
            if problem.code != "not_found":
                raise
            raise no_agent(agent_rows(home, daemon), name) from problem
    failure = failure_of(str(found["result"])) if found["ok"] else str(found["result"])
    if failure:
        do = f"rappd threads show {found['thread'][:8]}"
        print_error(failure, do, "agent", as_json=as_json, more={"run": found})
        return 1
    if as_json:
        print_json({"run": found})
    else:
        print_out(strip_control(str(found["result"])))
    return 0


agents.add_command(approve)


def _workspace(home: Home) -> Workspace:
    from rappd.cli.standalone import workspace_of
    from rappd.settings.load import Settings

    home.create()
    workspace = workspace_of(home, Settings.load(home))
    workspace.create()
    return workspace


def _files(home: Home) -> AgentFiles:
    from twins.workspace.agent_files import AgentFiles

    return AgentFiles(_workspace(home), approvals=home.approvals)


def _place(home: Home, filename: str, content: bytes, reason: str) -> str:
    """Puts a file in its place; what its owner brings in himself is approved by that."""
    from twins.installer.quarantine import QuarantineList
    from twins.workspace.agent_files import sha256

    files = _files(home)
    name, staged = files.stage(filename, content)
    files.place(name, staged, reason=reason)
    QuarantineList(home.held, home.root).release(files.path(name), sha256(content))
    return name


def _file_here(home: Home, name: str) -> str:
    """The file that a person means, with the daemon down; only a name that is no file's costs workers."""
    return file_in(_workspace(home).agents, name) or file_of(agent_rows(home, ControlClient(home)), name)


def _arguments(pairs: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign or not re.fullmatch(r"\w+", key):
            raise UsageProblemError(
                f'"{pair[:80]}" is not NAME=VALUE.', do="rappd agents run HackerNews count=5"
            )
        try:
            found[key] = json.loads(text)
        except ValueError:
            found[key] = text
    return found


def _report(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({"agent": found})
        return
    print_out(
        f"{status_mark('good' if found.get('status') == 'ok' else 'note')} {strip_control(found['message'])}"
    )
    if found.get("undo"):
        print_out(f"  {dim('to bring it back:')} {command('rappd agents undo ' + found['undo'])}")
