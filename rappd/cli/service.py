"""``rappd service``: keeps the daemon running after logout, by systemd or launchd."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from agents.programs import programs
from agents.storage.atomic_write import write_atomically
from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import print_out, print_status, status_mark
from rappd.cli.formatting import tilde
from rappd.cli.printer import Printer
from rappd.daemon.home import Home
from rappd.daemon.service_unit import LAUNCHD_LABEL, launchd_path, launchd_plist, systemd_path, systemd_unit
from rappd.errors import RappdError

_SECONDS = 120.0


@click.group(cls=SuggestingGroup)
def service() -> None:
    """Keep it running after you log out."""


@service.command()
@click.option("--print", "only_print", is_flag=True, help="Print the unit, install nothing.")
def install(only_print: bool, printer: Printer) -> None:
    """Write the unit for this account and start it."""
    home = Home.here()
    mac = sys.platform == "darwin"
    text = launchd_plist(home) if mac else systemd_unit(home)
    path = launchd_path() if mac else systemd_path()
    if only_print:
        printer.result(
            {"service": {"file": str(path), "unit": text, "started": False}}, print_out, text.rstrip()
        )
        return
    home.create()
    write_atomically(path, text.encode(), mode=0o644)
    started = mac or programs.find("systemctl") is not None
    if mac:
        _run(["launchctl", "load", "-w", str(path)])
    elif started:
        _run(["systemctl", "--user", "daemon-reload"])
        _run(["systemctl", "--user", "enable", "--now", "rappd.service"])
    done = {"file": str(path), "unit": text, "started": started}
    printer.result({"service": done}, _show_installed, path, started, mac)


def _show_installed(path: Path, started: bool, mac: bool) -> None:
    print_out(f"{status_mark('good')} {tilde(path)}")
    if not started:
        print_status(
            "note", "systemd is not here; the unit is written but not started.", "rappd start --detach"
        )
        return
    print_out(f"{status_mark('good')} rappd runs, now and after each restart.")
    if not mac and not _linger():
        print_status("note", "It stops when you log out.", "sudo loginctl enable-linger $USER")


@service.command()
def uninstall(printer: Printer) -> None:
    """Stop it and take the unit away."""
    mac = sys.platform == "darwin"
    path = launchd_path() if mac else systemd_path()
    was = path.exists()
    if mac and was:
        _run(["launchctl", "unload", "-w", str(path)])
    elif was and programs.find("systemctl"):
        _run(["systemctl", "--user", "disable", "--now", "rappd.service"])
    path.unlink(missing_ok=True)
    name = LAUNCHD_LABEL if mac else "rappd.service"
    text = f"{name} is gone." if was else "No service is installed."
    printer.sentence({"service": {"file": str(path), "removed": was}}, f"{text} Your data stays.")


def _linger() -> bool:
    """Asks that this account's services go on after logout; False when that is not granted."""
    try:
        return _of_the_session(["loginctl", "enable-linger"]).code == 0
    except OSError:
        return False


def _run(arguments: list[str]) -> None:
    try:
        done = _of_the_session(arguments)
    except OSError as problem:
        raise _refused(arguments[0], problem.strerror or str(problem)) from problem
    if done.code:
        lines = (done.errors or done.output).decode("utf-8", "replace").strip().splitlines()
        raise _refused(arguments[0], lines[-1] if lines else str(done.code))


def _of_the_session(arguments: list[str]) -> programs.Finished:
    """Runs a program that reaches the account's service manager."""
    environment = programs.from_owner("XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS")
    return programs.run(arguments, environment=environment, home=True, seconds=_SECONDS)


def _refused(program: str, why: str) -> RappdError:
    return RappdError(f"{program} refused: {why}", do="`rappd start --detach` runs it without a service")
