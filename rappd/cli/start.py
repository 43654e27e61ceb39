"""``rappd start``: the screen a newcomer sees first."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import click

from envelopes.problem import Problem
from rappd.cli.daemon import Answered, Daemon
from rappd.cli.phrases import count, tilde
from rappd.cli.progress import progress
from rappd.cli.screen import command, dim, mark, print_json, say, tell, terminal_width
from rappd.cli.tables import cells, middle
from rappd.errors import Conflict, RappdError
from rappd.home import Home
from rappd.settings.load import Settings

if TYPE_CHECKING:
    from rappd.house import House

_WAIT_SECONDS = 120.0
_VALUES = 12  # the column where values begin
_VALUE_WIDTH = 23


@click.command()
@click.option("--detach", is_flag=True, help="Run in the background.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--quiet", is_flag=True, hidden=True)
def start(detach: bool, as_json: bool, quiet: bool) -> None:
    """Wake this machine's brainstem."""
    home = Home.here()
    first = not (home.keys / "identity.pem").exists()
    home.create()
    if detach:
        _detach(home)
        _show(Daemon(home).get("/operator/status"), first=first, as_json=as_json, attached=False)
        return
    from rappd import daemon, log
    from rappd.house import describe

    settings = Settings.load(home)
    news = _News(quiet=quiet)
    log.start(home.log, show=news)
    if settings.on("door.open_surface") and not quiet:
        tell(
            "note", "Every program on this machine may change agents (door.open_surface).", stream=sys.stderr
        )

    def ready(house: House) -> None:
        if not quiet:
            _show(describe(house), first=first, as_json=as_json, attached=True)
            news.awake = True

    daemon.run(home, settings, on_ready=ready)


class _News:
    """What the terminal of an attached daemon is told: warnings, and what becomes of agent files.

    What the start finds is in the screen it ends with, and in the log.
    """

    def __init__(self, *, quiet: bool) -> None:
        self.awake = False
        self._quiet = quiet

    def __call__(self, record: logging.LogRecord) -> None:
        about_agents = record.name == "agents"
        if self._quiet or (about_agents and not self.awake):
            return
        text = record.getMessage().split("\n", 1)[0]
        if not about_agents:
            tell("note", text, stream=sys.stderr)
        elif record.levelno >= logging.WARNING:
            tell("bad", text, "fix and save; it reloads by itself", stream=sys.stderr)
        else:
            tell("good", text, stream=sys.stderr)


def _show(found: dict[str, Any], *, first: bool, as_json: bool, attached: bool) -> None:
    if as_json:
        print_json({"daemon": found})
        return
    if first:
        _first_screen(found, attached=attached)
    else:
        _later_line(found)
    if found["unavailable"]:
        faulty = int(found["unavailable"])
        files = f"{count(faulty, 'agent file')} {'has a fault' if faulty == 1 else 'have faults'}"
        say(f"{mark('note')} {files}: {command('rappd agents list')}")
    _over_ssh(int(found["port"]), attached=attached)
    if not attached:
        say(dim("Stop it: ") + command("rappd stop"))


def _first_screen(found: dict[str, Any], *, attached: bool) -> None:
    no_model = not found["has_model"]
    thinks = thinking(found)
    hint = command("rappd config set provider.url URL") if no_model else ""
    ready = f"{found['agents']} ready"
    width = max(_VALUE_WIDTH, cells(thinks), cells(ready))
    say(f"{mark('good')} {found['node']} is awake")
    say()
    _row("Talk", found["url"], f" or: {command('rappd chat')}", 0)
    _row("Thinking", thinks, hint, width)
    drop = "drop files into "
    folder = middle(tilde(found["agents_path"]), terminal_width() - _VALUES - len(drop))
    _row("Agents", ready, f"{drop}{folder}", width)
    _row("Data", tilde(found["home"]), "private", width)
    say()
    if attached:
        say(f"Ctrl-C stops it. In the background: {command('rappd start --detach')}")


def _later_line(found: dict[str, Any]) -> None:
    """One line; the least needed words go from a narrow one."""
    line = f"{mark('good')} {found['name']} is awake  {found['url']}"
    for more in (found["provider"], count(found["agents"], "agent")):
        if cells(f"{line}  {more}") > terminal_width():
            break
        line = f"{line}  {more}"
    say(line)


def _row(label: str, value: str, hint: str, width: int) -> None:
    """One row of the start screen; a hint that does not fit stands below its value."""
    line = f"  {label:<{_VALUES - 2}}{value}"
    if not hint:
        say(line)
        return
    gap = " " * (max(0, width - cells(value)) + 2)
    if cells(f"{line}{gap}{hint}") <= terminal_width():
        say(f"{line}{gap}{hint}")
    else:
        say(line)
        say(f"{' ' * _VALUES}{hint.lstrip()}")


def thinking(found: dict[str, Any]) -> str:
    """ "offline brain, no model", or who thinks with which model."""
    return f"{found['provider']}, {found['model'] if found['has_model'] else 'no model'}"


def _over_ssh(port: int, *, attached: bool) -> None:
    way = way_over_ssh(port)
    if not way:
        return
    say("You are here over SSH; the link opens on your own machine after:")
    say(f"  {click.style(way, fg='cyan')}")
    if attached:
        say(f"It stops when SSH closes; to keep it: {command('rappd service install')}")


def way_over_ssh(port: int) -> str:
    """The ``ssh -L`` line that brings the page to the machine this person sits at; "" when it is this one."""
    connection = os.environ.get("SSH_CONNECTION", "").split()
    if len(connection) != 4:
        return ""
    _, _, host, ssh_port = connection
    other = "" if ssh_port == "22" else f" -p {ssh_port}"
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or "you"
    return f"ssh -L {port}:127.0.0.1:{port}{other} {user}@{host}"


def _detach(home: Home) -> None:
    """Starts the daemon in a session of its own and waits until it answers."""
    daemon = Daemon(home, timeout=_WAIT_SECONDS)
    if daemon.running():
        raise Conflict("rappd already runs on this home.", do="rappd open")
    with os.fdopen(os.open(home.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600), "ab") as log:
        position = log.seek(0, os.SEEK_END)
        process = subprocess.Popen(
            [sys.executable, "-m", "rappd", "start", "--quiet", "--json"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env={**os.environ, "RAPP_HOME": str(home.root)},
        )
    until = time.monotonic() + _WAIT_SECONDS
    with progress() as line:
        while time.monotonic() < until:
            if process.poll() is not None:
                raise _why_it_ended(home, position, process.returncode)
            if daemon.running() and _ready(daemon):
                return
            line("Waking…")
            time.sleep(0.03)
    raise RappdError("rappd started but does not answer.", do="rappd logs")


def _ready(daemon: Daemon) -> bool:
    try:
        daemon.get("/readyz")
    except (Answered, RappdError):
        return False
    return True


class _Ended(Problem):
    """The background process ended; it said why."""

    def __init__(self, said: dict[str, Any], exit_code: int) -> None:
        super().__init__(str(said["error"]), do=str(said.get("do", "")))
        self._said = str(said.get("code", "failed"))
        self._exit_code = exit_code

    @property
    def code(self) -> str:  # type: ignore[override]  # as the process told it
        return self._said

    @property
    def exit_code(self) -> int:  # type: ignore[override]  # the process's own
        return self._exit_code


def _why_it_ended(home: Home, position: int, exit_code: int) -> Problem:
    """What the background process said before it ended: an error object is its last line."""
    with home.log.open("rb") as log:
        log.seek(position)
        lines = log.read().decode("utf-8", "replace").splitlines()
    for line in reversed(lines):
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict) and "error" in said:
            return _Ended(said, exit_code)
    return RappdError("rappd ended at once.", do="rappd logs")
