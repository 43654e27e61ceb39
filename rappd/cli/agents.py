"""``rappd agents``: list, add, remove, new, test, run, approve."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import click

from rappd.cli.daemon import Daemon
from rappd.cli.screen import Verdict, arrow, command, dim, mark, note, print_json, say, table
from rappd.errors import Mistyped, NotFound
from rappd.home import Home
from rappd.settings.load import Settings

_JSON = click.option("--json", "as_json", is_flag=True, help="One JSON object.")


@click.group()
def agents() -> None:
    """List, add, write, test, run and approve agents."""


@agents.command("list")
@_JSON
def list_(as_json: bool) -> None:
    """Every agent, and every file that has a fault."""
    rows = _rows()
    if as_json:
        print_json({"agents": rows})
        return
    shown = []
    for row in rows:
        if row["quarantined"]:
            line = f" line {row['line']}" if row["line"] else ""
            shown.append([mark("bad"), row["file"], f"quarantined{line}: {row['reason']}", row["origin"]])
        elif row["shadowed_by"]:
            shown.append(
                [mark("note"), row["name"], f"not used: {row['shadowed_by']} has the name", row["origin"]]
            )
        else:
            verdict = mark("note") if row["reason"] else mark("good")
            shown.append([verdict, row["name"], _first_line(row["description"]), row["origin"]])
    table(["", "AGENT", "WHAT IT DOES", "FROM"], shown, shrink=2)
    broken = [row for row in rows if row["reason"] and not row["quarantined"]]
    for row in {row["file"]: row for row in broken}.values():
        line = f" line {row['line']}" if row["line"] else ""
        say(f"{mark('bad')} {row['file']}{line}: {row['reason']}. An earlier version works on.")


@agents.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_JSON
def add(file: Path, as_json: bool) -> None:
    """Take in an agent file; it is checked before it counts."""
    home = Home.here()
    daemon = Daemon(home)
    content = file.read_bytes()
    if daemon.running():
        found = daemon.upload("/agents/import", file.name, content)
    else:
        from twins.agent_files import AgentFiles

        files = AgentFiles(_workspace(home))
        name, staged = files.stage(file.name, content)
        files.place(name, staged, reason="added")
        found = {"status": "ok", "file": name, "message": f"{name} is in place; it loads at the next start."}
    _report(found, as_json)


@agents.command()
@click.argument("name")
@_JSON
def remove(name: str, as_json: bool) -> None:
    """Take an agent's file out of service; it is kept and can be brought back."""
    home = Home.here()
    daemon = Daemon(home)
    if daemon.running():
        found = daemon.delete(f"/agents/{_file_of(daemon, name)}")
    else:
        from twins.agent_files import AgentFiles

        token = AgentFiles(_workspace(home)).remove(name if name.endswith(".py") else f"{name}_agent.py")
        found = {"status": "ok", "message": f"{name} is out of service.", "undo": token}
    _report(found, as_json)


@agents.command()
@click.argument("name")
@click.argument("description", nargs=-1)
@_JSON
def new(name: str, description: tuple[str, ...], as_json: bool) -> None:
    """Write the beginning of a new agent: one file to fill in."""
    from agents.scaffold import scaffold

    home = Home.here()
    filename, source = scaffold(name, " ".join(description))
    daemon = Daemon(home)
    if daemon.running():
        found = daemon.post("/agents/new", {"filename": filename, "source": source})
    else:
        from twins.agent_files import AgentFiles
        from twins.errors import BadFile

        workspace = _workspace(home)
        if (workspace.agents / filename).exists():
            raise BadFile(f"{filename} exists already.", do="Choose another name.")
        files = AgentFiles(workspace)
        files.place(*files.stage(filename, source.encode()), reason="new")
        found = {"status": "ok", "file": filename, "message": f"{filename} is written."}
    found["path"] = str(_workspace(home).agents / filename)
    _report(found, as_json)
    if not as_json:
        say(f"  {arrow()} {found['path']}")


@agents.command()
@click.argument("name")
@_JSON
def test(name: str, as_json: bool) -> int:
    """Run the contract tests over an agent or a file."""
    from rappd.offline import test_agent

    tests = test_agent(Home.here(), name)
    failed = [found for found in tests if not found["passed"] and not found.get("note")]
    if as_json:
        print_json({"tests": tests})
        return 1 if failed else 0
    for found in tests:
        verdict: Verdict = "good"
        if not found["passed"]:
            verdict = "note" if found.get("note") else "bad"
        say(f"{mark(verdict)} {found['test']:<28} {dim(str(found.get('message', '')))}".rstrip())
    return 1 if failed else 0


@agents.command()
@click.argument("name")
@click.argument("arguments", nargs=-1)
@_JSON
def run(name: str, arguments: tuple[str, ...], as_json: bool) -> int:
    """Run one agent: rappd agents run HackerNews count=5."""
    found = Daemon(Home.here(), timeout=600).post(
        "/agents/run", {"agent": name, "args": _arguments(arguments)}
    )
    if as_json:
        print_json({"run": found})
    elif found["ok"]:
        say(str(found["result"]))
    else:
        note(f"{mark('bad', sys.stderr)} {found['result']}")
    return 0 if found["ok"] else 1


@agents.command()
@click.argument("name")
@_JSON
def approve(name: str, as_json: bool) -> None:
    """Let the present version of an agent's file change other agents."""
    home = Home.here()
    daemon = Daemon(home)
    if daemon.running():
        found = daemon.post("/agents/approve", {"filename": _file_of(daemon, name)})
    else:
        from twins.agent_files import AgentFiles, sha256

        files = AgentFiles(_workspace(home))
        digest = sha256(files.read(name))
        files.approve(name, digest)
        found = {"status": "ok", "message": f"{name} is approved.", "file": name, "sha256": digest}
    _report(found, as_json)


def _rows() -> list[dict[str, Any]]:
    home = Home.here()
    daemon = Daemon(home)
    if daemon.running():
        files = daemon.get("/agents")["files"]
        return [card for file in files for card in file["cards"]]
    from rappd.offline import list_agents

    return list_agents(home)


def _workspace(home: Home) -> Any:
    from rappd.offline import workspace_of

    home.create()
    workspace = workspace_of(home, Settings.load(home))
    workspace.create()
    return workspace


def _file_of(daemon: Daemon, name: str) -> str:
    cards = [card for file in daemon.get("/agents")["files"] for card in file["cards"]]
    for card in cards:
        if name in (card["file"], card["name"]) and card["origin"] == "yours":
            return str(card["file"])
    if any(name in (card["file"], card["name"]) for card in cards):
        raise NotFound(f"{name} is not a file of yours.", do="rappd agents list")
    raise NotFound(f'No agent "{name}".', do="rappd agents list")


def _arguments(pairs: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for pair in pairs:
        key, sign, text = pair.partition("=")
        if not sign or not re.fullmatch(r"\w+", key):
            raise Mistyped(f'"{pair}" is not NAME=VALUE.', do="rappd agents run HackerNews count=5")
        try:
            found[key] = json.loads(text)
        except ValueError:
            found[key] = text
    return found


def _report(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json({"agent": found})
        return
    say(f"{mark('good' if found.get('status') == 'ok' else 'note')} {found['message']}")
    if found.get("undo"):
        say(dim(f"  kept; to bring it back: {command('rappd agents add FILE')}"))


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0]
