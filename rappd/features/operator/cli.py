"""``rappd open``, ``stop``, ``status`` and ``logs``."""

from __future__ import annotations

import os
import signal
import sys
import time
from typing import Any

import click

from agents.programs import programs
from rappd.cli.command_parameters import cli_command
from rappd.cli.console import command, print_err, print_out, print_status, status_mark, strip_control
from rappd.cli.formatting import count, phones, tilde
from rappd.cli.printer import JSON, Printer, json_option
from rappd.cli.progress import progress
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.daemon.log import follow as follow_log
from rappd.daemon.log import tail
from rappd.errors import NotRunningError, RappdError
from rappd.features.operator.text import (
    listener_status,
    local_models,
    notices,
    print_stopped,
    show_problems,
    thinking,
    waiting_files,
    way_over_ssh,
)
from rappd.features.snapshots.text import show_failing

_STOP_SECONDS = 20.0
_USUAL = ("ready", "no model")


@cli_command("open")
@JSON
@click.option("--browser", is_flag=True, help="Also open it in the browser.")
def open_(printer: Printer, browser: bool) -> None:
    """Print a link that opens the page as its operator (one use, ten minutes)."""
    daemon = ControlClient(Home.here())
    found = daemon.post("/operator/key")
    printer.result({"link": found}, _show_link, found["url"], daemon)
    if browser:
        open_in_browser(found["url"])


def _show_link(url: str, daemon: ControlClient) -> None:
    print_out(url)
    if way := way_over_ssh(int(daemon.do("operator.status")["port"])):
        print_err("You are here over SSH; the link opens on your own machine after:")
        print_err(f"  {click.style(way, fg='cyan')}")


def open_in_browser(url: str) -> None:
    """Shows a page in the browser of the desktop, or says why not."""
    opener = "open" if sys.platform == "darwin" else "xdg-open"
    environment = programs.from_owner(*programs.DESKTOP)
    try:
        programs.start([opener, url], environment=environment, home=True)
    except OSError:
        why = programs.why_not_used(opener) or f"{opener} is not here"
        print_status("note", f"No browser was opened: {why}.", "open the link yourself", stream=sys.stderr)


@cli_command()
def stop(printer: Printer) -> None:
    """Stop rappd on this machine."""
    home = Home.here()
    pid = running_pid(home)
    os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + _STOP_SECONDS
    with progress() as shown:
        while not _ended(home, pid):
            if time.monotonic() > until:
                raise RappdError(f"rappd (process {pid}) does not stop.", do=f"kill -9 {pid}")
            shown("Stopping…")
            time.sleep(0.03)
    printer.result({"stopped": {"pid": pid}}, lambda _: print_stopped())


@cli_command()
def status(printer: Printer) -> None:
    """Is it running, and what does it think with?"""
    daemon = ControlClient(Home.here())
    found = daemon.get("/operator/status")
    found.pop("url", None)
    provider = daemon.get("/health")["provider"]
    found["state"] = provider["state"]
    found |= {key: provider[key] for key in ("refusal", "refused_at") if key in provider}
    printer.result({"status": found}, _show_status, found)


def _show_status(found: dict[str, Any]) -> None:
    faults = f", {count(found['unavailable'], 'file')} with faults" if found["unavailable"] else ""
    print_out(f"{status_mark('good')} {found['node']} is running on port {found['port']}")
    print_out()
    state = found["state"]
    print_out(f"  Model     {thinking(found)}{f', {state}' if state not in _USUAL else ''}")
    if refusal := found.get("refusal"):
        at = time.strftime("%H:%M", time.localtime(found["refused_at"]))
        print_out(f"            {status_mark('note')} {strip_control(refusal)} (at {at})")
    print_out(f"  Agents    {found['agents']} ready{faults}")
    machines = found["machines"]
    print_out(f"  Machines  {listener_status(machines)}, {count(machines['peers'], 'peer')}")
    joined = found["phones"]
    hint = "" if joined["registered"] else f"  {command('rappd pair')}"
    print_out(f"  Phones    {phones(joined['registered'], joined['connected'])}{hint}")
    print_out(f"  Data      {tilde(found['home'])}")
    show_problems(found)
    waiting_files(found)
    if not any(line.startswith("Scheduled snapshot") for line in found["notices"]):  # dismissed, and still so
        show_failing(found["schedule"])
    notices(found)
    local_models(found)
    print_out()
    print_out(f"Open the page: {command('rappd open')}")
    print_out(f"Stop it:       {command('rappd stop')}")


def running_pid(home: Home) -> int:
    """The daemon's process id. Raises ``NotRunningError``."""
    if ControlClient(home).running():
        try:
            return int(home.process_file.read_text().split()[0])
        except (OSError, ValueError, IndexError):
            pass
    raise NotRunningError("rappd isn't running here.", do="rappd start")


def _ended(home: Home, pid: int) -> bool:
    """True when the process has ended, or at least released the home (its parent may not have noticed)."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return not ControlClient(home).running() and not home.process_file.read_text().strip()


@cli_command()
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0, 100_000),
    default=50,
    show_default=True,
    help="How many to begin with.",
)
@json_option("One JSON object; with -f one per line.")
def logs(follow: bool, lines: int, printer: Printer) -> None:
    """Show the log."""
    path = Home.here().log
    if follow:
        for line in follow_log(path, lines):
            printer.event({"line": line}, print_out, strip_control(line))
            sys.stdout.flush()
        return
    found = tail(path, lines)
    printer.result({"log": found}, _show_log, found, lines)


def _show_log(found: list[str], lines: int) -> None:
    if not found and lines:
        print_err("The log is empty.")
    for line in found:
        print_out(strip_control(line))
