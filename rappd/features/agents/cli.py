"""``rappd agents``: list, show, needs, add, remove, undo, new, test, run, approve."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.command_parameters import Argument
from rappd.cli.completion_names import agent_names
from rappd.cli.console import arrow, command, dim, print_out, status_mark, strip_control
from rappd.cli.formatting import tilde
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.control_client import ControlClient, ResponseError
from rappd.daemon.home import Home
from rappd.errors import FailedAnswerError, NotFoundError, UsageProblemError
from rappd.features.agents.approve_cli import approve
from rappd.features.agents.text import (
    agent_rows,
    failed,
    file_in,
    file_of,
    no_agent,
    row_of,
    run_tests,
    show_agent,
    show_needs,
    show_rows,
    show_tests,
)
from rappd.settings.load import Settings, host_workspace

_Agent = Annotated[str, Argument(shell_complete=agent_names)]


@click.group(cls=SuggestingGroup)
def agents() -> None:
    """List, add, write, test, run and approve agents."""


@agents.command("list")
def list_(printer: Printer) -> None:
    """Every agent, and every file that has a fault."""
    rows = agent_rows(HomeClient(Home.here(), reads=True))
    printer.result({"agents": rows}, show_rows, rows)


@agents.command()
def show(name: _Agent, printer: Printer) -> None:
    """Show what an agent does, what it takes, and what it may reach."""
    rows = agent_rows(HomeClient(Home.here(), reads=True))
    found = row_of(rows, name)
    printer.result({"agent": found}, show_agent, found)


@agents.command()
def needs(name: _Agent, printer: Printer) -> None:
    """Tell what an agent may reach, what its calls asked for, and what was refused."""
    daemon = ControlClient(Home.here())
    try:
        found = daemon.do("agents.needs", name=name)
    except ResponseError as problem:
        if problem.code != "not_found":
            raise
        raise no_agent(agent_rows(daemon), name) from problem
    printer.result({"agent": found}, show_needs, found)


@agents.command()
def add(file: Path, printer: Printer) -> None:
    """Take in an agent file; it is checked before it counts."""
    if not file.is_file():
        raise NotFoundError(f'No file "{file}".', do="rappd agents add PATH/weather_agent.py")
    _report(HomeClient(Home.here()).upload("/agents/import", file.name, file.read_bytes()), printer)


@agents.command()
def remove(name: _Agent, printer: Printer) -> None:
    """Take an agent's file out of service; it is kept and can be brought back."""
    here = Home.here()
    home = HomeClient(here)
    file = file_in(host_workspace(here, Settings.load(here)).agents, name) or file_of(agent_rows(home), name)
    _report(home.do("agents.remove", filename=file), printer)


@agents.command()
def undo(token: str, printer: Printer) -> None:
    """Bring a removed file back; TOKEN is the code printed when you removed it."""
    _report(HomeClient(Home.here()).do("agents.undo", undo=token), printer)


@agents.command()
@click.option("--listener", is_flag=True, help="A listener: typed fields, and a function that handles them.")
def new(name: str, description: tuple[str, ...], listener: bool, printer: Printer) -> None:
    """Write the beginning of a new agent: one file to fill in."""
    from agents.contract.scaffold import scaffold

    home = Home.here()
    filename, source = scaffold(name, " ".join(description), listener=listener)
    found = HomeClient(home).do("agents.new", filename=filename, source=source)
    found["path"] = str(host_workspace(home, Settings.load(home)).agents / found["file"])
    _report(found, printer)
    printer.note(print_out, f"  {arrow()} {tilde(found['path'])}")


@agents.command()
def test(name: _Agent, printer: Printer) -> int:
    """Run the contract tests over an agent, by its name, or over a file, by its path."""
    home = Home.here()
    tests = run_tests(HomeClient(home, timeout=120), host_workspace(home, Settings.load(home)).agents, name)
    printer.result({"tests": tests}, show_tests, tests)
    return 1 if any(map(failed, tests)) else 0


@agents.command()
def run(name: _Agent, arguments: tuple[str, ...], printer: Printer) -> int:
    """Run one agent: rappd agents run HackerNews count=5."""
    from agents.contract.readable_results import failure_of

    daemon = ControlClient(Home.here(), timeout=600)
    body = {"agent": name, "args": _arguments(daemon, name, arguments)}
    with progress(f"{name}…"):
        try:
            found = daemon.do("agents.run", **body)
        except ResponseError as problem:
            if problem.code != "not_found":
                raise
            raise no_agent(agent_rows(daemon), name) from problem
    failure = failure_of(str(found["result"])) if found["ok"] else str(found["result"])
    if failure:
        raise FailedAnswerError(failure, do=f"rappd threads show {found['thread'][:8]}", run=found)
    printer.result({"run": found}, print_out, strip_control(str(found["result"])))
    return 0


agents.add_command(approve)


def _arguments(daemon: ControlClient, name: str, pairs: tuple[str, ...]) -> dict[str, Any]:
    """Arguments by name. A text that is JSON is that, unless the agent takes text there, or digits that JSON would lose."""
    found: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign or not re.fullmatch(r"\w+", key):
            raise UsageProblemError(
                f'"{pair[:80]}" is not NAME=VALUE.', do="rappd agents run HackerNews count=5"
            )
        if key in found:
            raise UsageProblemError(f'"{key[:80]}" is given twice.', do=f"Give {key[:80]} once.")
        try:
            found[key] = json.loads(text)
        except (ValueError, RecursionError):
            found[key] = text
        if found[key] is None or isinstance(found[key], bool | int | float):
            texts[key] = text
    if texts:
        takes = _taken_as_text(agent_rows(daemon), name)
        found.update((key, text) for key, text in texts.items() if key in takes)
    return found


def _taken_as_text(rows: list[dict[str, Any]], name: str) -> set[str]:
    """The parameters of an agent that are text, and the fields of a listener that are decimal numbers."""
    row = next((one for one in rows if str(one["name"]).casefold() == name.casefold()), {})
    properties = (row.get("parameters") or {}).get("properties") or {}
    fields = (row.get("listener") or {}).get("fields") or ()
    texts = {key for key, schema in properties.items() if isinstance(schema, dict) and _is_text(schema)}
    return texts | {field["name"] for field in fields if field["type"]["kind"] == "decimal"}


def _is_text(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "string" and not any(
        not isinstance(one, str) for one in schema.get("enum") or ()
    )


def _report(found: dict[str, Any], printer: Printer) -> None:
    printer.result({"agent": found}, _show, found)


def _show(found: dict[str, Any]) -> None:
    print_out(
        f"{status_mark('good' if found.get('status') == 'ok' else 'note')} {strip_control(found['message'])}"
    )
    if found.get("reach"):
        print_out(f"  {dim('reach:')} {strip_control('; '.join(found['reach']))}")
    if found.get("undo"):
        print_out(f"  {dim('to bring it back:')} {command('rappd agents undo ' + found['undo'])}")
