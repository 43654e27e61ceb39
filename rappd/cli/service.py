"""``rappd service``: keeps the daemon running after logout, by systemd or launchd."""

from __future__ import annotations

import shutil
import subprocess
import sys

import click

from rappd.cli.screen import arrow, command, mark, note, say
from rappd.errors import RappdError
from rappd.home import Home
from rappd.service_unit import LAUNCHD_LABEL, launchd_path, launchd_plist, systemd_path, systemd_unit
from twins.workspace import write_atomically


@click.group()
def service() -> None:
    """Keep it running after you log out."""


@service.command()
@click.option("--print", "only_print", is_flag=True, help="Print the unit, install nothing.")
def install(only_print: bool) -> None:
    """Write the unit for this account and start it."""
    home = Home.here()
    mac = sys.platform == "darwin"
    text = launchd_plist(home) if mac else systemd_unit(home)
    if only_print:
        say(text.rstrip())
        return
    path = launchd_path() if mac else systemd_path()
    home.create()
    write_atomically(path, text.encode(), mode=0o644)
    say(f"{mark('good')} {path}")
    if mac:
        _run(["launchctl", "load", "-w", str(path)])
    elif shutil.which("systemctl") is None:
        note(f"{mark('note', sys.stderr)} systemd is not here; the unit is written but not started.")
        note(f"  {arrow(sys.stderr)} {command('rappd start --detach')}")
        return
    else:
        _run(["systemctl", "--user", "daemon-reload"])
        _run(["systemctl", "--user", "enable", "--now", "rappd.service"])
        linger = subprocess.run(["loginctl", "enable-linger"], capture_output=True, check=False)
        if linger.returncode:
            note(f"{mark('note', sys.stderr)} It stops when you log out.")
            note(f"  {arrow(sys.stderr)} sudo loginctl enable-linger $USER")
    say(f"{mark('good')} rappd runs, now and after each restart.")


@service.command()
def uninstall() -> None:
    """Stop it and take the unit away."""
    mac = sys.platform == "darwin"
    path = launchd_path() if mac else systemd_path()
    if mac and path.exists():
        _run(["launchctl", "unload", "-w", str(path)])
    elif shutil.which("systemctl") and path.exists():
        _run(["systemctl", "--user", "disable", "--now", "rappd.service"])
    path.unlink(missing_ok=True)
    say(f"{mark('good')} {LAUNCHD_LABEL if mac else 'rappd.service'} is gone. Your data stays.")


def _run(arguments: list[str]) -> None:
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise RappdError(
            f"{arguments[0]} refused: {said[-1] if said else done.returncode}",
            do="rappd start --detach runs it without a service.",
        )
