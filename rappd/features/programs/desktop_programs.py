"""Settings that desktop programs and editors take to start ``rappd mcp``: which lines, in which file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Snippet(NamedTuple):
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


CLIENTS: dict[str, tuple[str, Callable[..., str]]] = {
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


def snippet(client: str, command: list[str], variables: Mapping[str, str]) -> Snippet:
    """The lines for one program. ``variables`` are set for the command that it starts."""
    place, write = CLIENTS[client]
    return Snippet(place, write(command, variables))
