"""``rappd mcp`` and ``rappd acp``: both protocols on stdin and stdout, and the lines that programs take for them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import click

from agents.programs.programs import known_to_shell
from rappd.cli.command_group import SuggestingGroup
from rappd.cli.command_parameters import cli_command
from rappd.cli.console import print_err, print_out, wrapped
from rappd.cli.printer import Printer
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import NotRunningError


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


class _Snippet(NamedTuple):
    """The text that a program takes, and the place where it belongs."""

    place: str
    text: str


def _json(key: str, shape: Callable[[list[str], Mapping[str, str]], dict[str, object]]) -> Callable[..., str]:
    def write(command: list[str], variables: Mapping[str, str]) -> str:
        return json.dumps({key: {"rappd": shape(command, variables)}}, indent=2)

    return write


def _usual(command: list[str], variables: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {"command": command[0], "args": command[1:]}
    return {**found, "env": dict(variables)} if variables else found


def _typed(command: list[str], variables: Mapping[str, str]) -> dict[str, object]:
    return {"type": "stdio", **_usual(command, variables)}


def _opencode(command: list[str], variables: Mapping[str, str]) -> dict[str, object]:
    found: dict[str, object] = {"type": "local", "command": command, "enabled": True}
    return {**found, "environment": dict(variables)} if variables else found


def _toml(command: list[str], variables: Mapping[str, str]) -> str:
    lines = [
        "[mcp_servers.rappd]",
        f"command = {json.dumps(command[0])}",
        f"args = {json.dumps(command[1:])}",
    ]
    if variables:
        pairs = ", ".join(f"{name} = {json.dumps(value)}" for name, value in variables.items())
        lines.append(f"env = {{ {pairs} }}")
    return "\n".join(lines)


def _yaml(command: list[str], variables: Mapping[str, str]) -> str:
    lines = [
        "mcpServers:",
        "  - name: rappd",
        f"    command: {json.dumps(command[0])}",
        f"    args: {json.dumps(command[1:])}",
    ]
    if variables:
        lines.append("    env:")
        lines += [f"      {name}: {json.dumps(value)}" for name, value in variables.items()]
    return "\n".join(lines)


_CLIENTS: dict[str, tuple[str, Callable[..., str]]] = {
    "claude-desktop": ("claude_desktop_config.json, by Settings, Developer", _json("mcpServers", _usual)),
    "claude-code": (".mcp.json in the project", _json("mcpServers", _typed)),
    "cursor": ("~/.cursor/mcp.json", _json("mcpServers", _usual)),
    "vscode": (".vscode/mcp.json", _json("servers", _typed)),
    "zed": ("settings.json of Zed", _json("context_servers", _usual)),
    "opencode": ("opencode.json", _json("mcp", _opencode)),
    "codex": ("~/.codex/config.toml", _toml),
    "continue": ("~/.continue/config.yaml", _yaml),
}
"""By program: where its lines belong, and who writes them."""


def _snippet(client: str, command: list[str], variables: Mapping[str, str]) -> _Snippet:
    """The lines for one program. ``variables`` are set for the command that it starts."""
    place, write = _CLIENTS[client]
    return _Snippet(place, write(command, variables))


@mcp.command()
@click.argument("client", metavar="CLIENT", type=click.Choice(sorted(_CLIENTS)))
@click.option("--start", "starts", is_flag=True, help="With --start in the command that the program runs.")
def config(client: str, starts: bool, printer: Printer) -> None:
    """Print the lines with which CLIENT uses this machine's agents.

    CLIENT is one of claude-code, claude-desktop, codex, continue, cursor, opencode, vscode, zed.
    """
    found = _snippet(client, [_program(), "mcp", *(["--start"] if starts else [])], _variables())
    printer.result({"snippet": found._asdict()}, _show, found)


def _show(found: _Snippet) -> None:
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
