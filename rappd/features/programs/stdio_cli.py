"""``rappd mcp`` and ``rappd acp``: both protocols on stdin and stdout."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from agents.programs.programs import known_to_shell
from rappd.cli.command_group import SuggestingGroup
from rappd.cli.command_parameters import cli_command
from rappd.cli.console import print_err, print_out, wrapped
from rappd.cli.printer import Printer
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import NotRunningError
from rappd.features.programs.desktop_programs import CLIENTS, Snippet, snippet


@click.group(cls=SuggestingGroup, invoke_without_command=True)
@click.option("--start", "starts", is_flag=True, help="Start rappd in the background if it does not run.")
@click.pass_context
def mcp(context: click.Context, starts: bool) -> None:
    """Serve MCP on stdin and stdout, for programs that start their servers themselves."""
    if context.invoked_subcommand is not None:
        return
    home = Home.here()
    ensure_running(home, starts=starts)
    from rappd.features.programs import mcp_stdio

    mcp_stdio.run(home)


def ensure_running(home: Home, *, starts: bool) -> None:
    """Starts the daemon where that is wanted. Raises ``NotRunningError`` where none runs otherwise."""
    if ControlClient(home).running():
        return
    if not starts:
        raise NotRunningError("rappd is not running.", do="rappd start, or add --start to this command")
    from rappd.cli.start import start_detached

    start_detached(home)


@cli_command()
@click.option("--start", "starts", is_flag=True, help="Start rappd in the background if it does not run.")
def acp(starts: bool) -> None:
    """Serve the Agent Client Protocol on stdin and stdout, for editors that start their agents themselves."""
    home = Home.here()
    ensure_running(home, starts=starts)
    from rappd.features.programs import acp_stdio

    acp_stdio.run(home)


@mcp.command()
@click.argument("client", metavar="CLIENT", type=click.Choice(sorted(CLIENTS)))
@click.option("--start", "starts", is_flag=True, help="With --start in the command that the program runs.")
def config(client: str, starts: bool, printer: Printer) -> None:
    """Print the lines with which CLIENT uses this machine's agents.

    CLIENT is one of claude-code, claude-desktop, codex, continue, cursor, opencode, vscode, zed.
    """
    found = snippet(client, [_program(), "mcp", *(["--start"] if starts else [])], _variables())
    printer.result({"snippet": found._asdict()}, _show, found)


def _show(found: Snippet) -> None:
    print_err(wrapped(f"For {found.place}:", 0, stream=sys.stderr))
    print_out(found.text)


def _program() -> str:
    """The command as a program finds it that knows nothing of this shell."""
    for here in (Path(sys.argv[0]), Path(sys.executable).with_name("rappd")):
        if here.name == "rappd" and here.exists():
            return str(here.absolute())
    return known_to_shell("rappd") or "rappd"


def _variables() -> dict[str, str]:
    return {name: os.environ[name] for name in ("RAPP_HOME",) if os.environ.get(name)}
