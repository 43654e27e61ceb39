"""``rappd start``: the screen a newcomer sees first."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import click

from rappd.cli.daemon import Daemon
from rappd.cli.screen import command, dim, mark, note, print_json, say, tilde
from rappd.errors import RappdError
from rappd.home import Home
from rappd.settings.load import Settings

if TYPE_CHECKING:
    from rappd.house import House

_WAIT_SECONDS = 30.0


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
        _show(_status(home), first=first, as_json=as_json, attached=False)
        return
    from rappd import daemon, log
    from rappd.house import describe as daemon_status

    settings = Settings.load(home)
    log.start(home.log, terminal=not quiet)
    if settings.on("door.open_surface"):
        note(
            f"{mark('note', sys.stderr)} Structural routes are open to every program on this machine (door.open_surface)."
        )

    def ready(house: House) -> None:
        if not quiet:
            _show(daemon_status(house), first=first, as_json=as_json, attached=True)

    daemon.run(home, settings, on_ready=ready)


def _status(home: Home) -> dict[str, object]:
    return Daemon(home).get("/operator/status")


def _show(found: dict[str, object], *, first: bool, as_json: bool, attached: bool) -> None:
    if as_json:
        print_json({"daemon": found})
        return
    thinks = str(found["provider"]) + (f", {found['model']}" if found["has_model"] else "")
    agents = found["agents"]
    if not first:
        say(f"{mark('good')} {found['name']} is awake  {found['url']}  {thinks}  {agents} agents")
    else:
        from pathlib import Path

        model = "" if found["has_model"] else ", no model"
        hint = "" if found["has_model"] else command("rappd config set provider.url URL")
        say(f"{mark('good')} {found['node']} is awake")
        say()
        say(f"  Talk      {found['url']}   or: {command('rappd chat')}")
        say(f"  Thinking  {thinks}{model}  {hint}".rstrip())
        say(
            f"  Agents    {agents} ready                  drop files into {tilde(Path(str(found['agents_path'])))}"
        )
        say(f"  Data      {tilde(Path(str(found['home'])))}                   private")
        say()
        if attached:
            say(f"Ctrl-C stops it. In the background: {command('rappd start --detach')}")
    if found["unavailable"]:
        say(f"{mark('note')} {found['unavailable']} agent files have faults: {command('rappd agents list')}")
    _over_ssh(int(str(found["port"])), attached=attached)
    if not attached:
        say(dim("Stop it: ") + command("rappd stop"))


def _over_ssh(port: int, *, attached: bool) -> None:
    connection = os.environ.get("SSH_CONNECTION", "").split()
    if len(connection) != 4:
        return
    user = os.environ.get("USER") or "you"
    say(
        f"  You are here over SSH. On your own machine: ssh -L {port}:127.0.0.1:{port} {user}@{connection[2]}"
    )
    if attached:
        say(f"  It stops when SSH closes; to keep it: {command('rappd service install')}")


def _detach(home: Home) -> None:
    """Starts the daemon in a session of its own and waits until it answers."""
    daemon = Daemon(home)
    if daemon.running():
        from rappd.errors import Conflict

        raise Conflict("rappd already runs on this home.", do="rappd open")
    with home.log.open("ab") as log:
        position = log.tell()
        process = subprocess.Popen(
            [sys.executable, "-m", "rappd", "start", "--quiet"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
        )
    until = time.monotonic() + _WAIT_SECONDS
    while time.monotonic() < until:
        if process.poll() is not None:
            _explain_end(home, position)
        if daemon.running() and _ready(daemon):
            return
        time.sleep(0.03)
    raise RappdError("rappd started but does not answer.", do="rappd logs")


def _ready(daemon: Daemon) -> bool:
    from rappd.cli.daemon import Answered

    try:
        daemon.get("/readyz")
    except Answered:
        return False
    return True


def _explain_end(home: Home, position: int) -> None:
    """Repeats what the background process said before it ended."""
    with home.log.open("rb") as log:
        log.seek(position)
        said = log.read().decode("utf-8", "replace").strip()
    lines = [line for line in said.splitlines() if line.strip()]
    what = lines[0].lstrip("✗x ").strip() if lines else "rappd ended at once."
    do = lines[1].lstrip("→-> ").strip() if len(lines) > 1 else "rappd logs"
    raise RappdError(what, do=do)
