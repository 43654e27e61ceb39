"""``rappd open``, ``stop`` and ``status``."""

from __future__ import annotations

import os
import signal
import time

import click

from rappd.cli.daemon import Daemon
from rappd.cli.screen import command, mark, print_json, say, terminal_width, tilde
from rappd.errors import NotRunning, RappdError
from rappd.home import Home


@click.command("open")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.option("--browser", is_flag=True, help="Also open it in the browser.")
def open_(as_json: bool, browser: bool) -> None:
    """Print a link that opens the page as its operator (one use, ten minutes)."""
    found = Daemon(Home.here()).post("/operator/key")
    if as_json:
        print_json({"link": found})
        return
    say(found["url"])
    if browser:
        click.launch(found["url"])


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def stop(as_json: bool) -> None:
    """Stop the daemon of this home."""
    home = Home.here()
    pid = running_pid(home)
    os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            break
        if not Daemon(home).running() and not home.process_file.read_text().strip():
            break
        time.sleep(0.03)
    else:
        raise RappdError(f"rappd (process {pid}) does not stop.", do=f"kill -9 {pid}")
    if as_json:
        print_json({"stopped": {"pid": pid}})
    else:
        say(f"{mark('good')} Stopped. What was answered is kept.")


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def status(as_json: bool) -> None:
    """Is it running, and what does it think with?"""
    found = Daemon(Home.here()).get("/operator/status")
    found.pop("url", None)
    if as_json:
        print_json({"status": found})
        return
    thinks = str(found["provider"]) + (f", {found['model']}" if found["has_model"] else ", no model")
    say(f"{mark('good')} {found['node']} is awake on port {found['port']}")
    say()
    say(f"  Thinking  {thinks}")
    say(
        f"  Agents    {found['agents']} ready"
        + (f", {found['unavailable']} with faults" if found["unavailable"] else "")
    )
    from pathlib import Path

    say(f"  Data      {tilde(Path(found['home']))}")
    if terminal_width() >= 60:
        say()
        say(f"Open the page: {command('rappd open')}   Stop: {command('rappd stop')}")


def running_pid(home: Home) -> int:
    """The daemon's process id. Raises ``NotRunning``."""
    if Daemon(home).running():
        try:
            return int(home.process_file.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            pass
    raise NotRunning("rappd isn't running here.", do="rappd start")
