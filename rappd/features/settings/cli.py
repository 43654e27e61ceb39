"""``rappd config``: settings and where each came from. Works with the daemon down."""

from __future__ import annotations

import sys
from typing import Any

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.completion_names import setting_names
from rappd.cli.console import (
    dim,
    interactive,
    print_err,
    print_out,
    print_status,
    status_mark,
    strip_control,
    terminal_width,
    wrapped,
)
from rappd.cli.formatting import tilde
from rappd.cli.printer import Printer
from rappd.cli.tables import cells
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.errors import NotRunningError, UsageProblemError
from rappd.settings.load import Settings, Value, check
from rappd.settings.registry import Setting
from rappd.settings.validation import doubts
from rappd.settings.write import find, write
from rappd.settings.write import unset as take_out


@click.group(cls=SuggestingGroup)
def config() -> None:
    """Show and change settings."""


@config.command()
@click.argument("name", required=False, shell_complete=setting_names)
def show(name: str | None, printer: Printer) -> None:
    """Every setting, or one: its value and where it came from."""
    settings = Settings.load(Home.here())
    values = [settings.value(find(name).name)] if name else settings.all()
    printer.result({"settings": [_row(value) for value in values]}, _one if name else _all, values)
    for doubt in doubts(settings, values):
        print_status("note", f"{doubt.what}; rappd does not start with it", doubt.do, stream=sys.stderr)


@config.command("set", context_settings={"ignore_unknown_options": True})  # a secret may begin with "-"
@click.argument("name", shell_complete=setting_names)
def set_(name: str, printer: Printer, value: str | None = None) -> None:
    """Write a setting down; a running daemon takes live ones over at once.

    A secret is better given without VALUE: it is then asked for, or read from stdin.
    """
    home = Home.here()
    text = _asked(find(name)) if value is None else value
    setting = write(home, name, text)
    effective = Settings.load(home).value(setting.name)
    where = home.env_file if setting.secret else home.config
    running = _reloaded(home)
    shown = "set" if setting.secret else check(setting, text)
    text = f"{status_mark('good')} {setting.name} = {strip_control(shown)}  {dim(tilde(where))}"
    printer.result({"setting": {**_row(effective), "file": str(where)}}, print_out, text)
    if setting.name == "notify.command":
        _warn_of_command(effective.text)
    if effective.source != where.name:
        print_err(
            f"{status_mark('note', sys.stderr)} {setting.variable} in {_place(effective)} wins over it."
        )
    elif running and not setting.live:
        _show_later()


def _show_later() -> None:
    do = "`rappd stop`, then `rappd start`"
    print_status("note", "It counts from the next start.", do, stream=sys.stderr)


@config.command()
@click.argument("name", shell_complete=setting_names)
def unset(name: str, printer: Printer) -> None:
    """Take a setting out of both files; its default counts again."""
    home = Home.here()
    setting, files = take_out(home, name)
    effective = Settings.load(home).value(setting.name)
    running = bool(files) and _reloaded(home)
    where = dim(f"taken out of {' and '.join(files)}" if files else "already the default")
    shown = strip_control(_shown(effective)) or "empty"
    text = f"{status_mark('good')} {setting.name} is {shown}, {_origin(effective)}  {where}"
    printer.result({"setting": {**_row(effective), "removed_from": files}}, print_out, text)
    if running and not setting.live:
        printer.note(_show_later)


@config.command()
def path(printer: Printer) -> None:
    """Show the path of the settings file."""
    found = str(Home.here().config)
    printer.result({"path": found}, print_out, found)


def _reloaded(home: Home) -> bool:
    """Lets a running daemon take the settings over; False where none runs."""
    try:
        ControlClient(home).do("settings.reload")
    except NotRunningError:
        return False
    return True


def _all(values: list[Value]) -> None:
    """Settings that were changed come first, each with where; of the others their defaults. Nothing is cut."""
    changed = [value for value in values if value.source != "default"]
    defaults = [value for value in values if value.source == "default"]
    names = max(cells(value.setting.name) for value in values)
    if changed:
        print_out(dim("Changed"))
        for value in changed:
            _line(value, names)
        print_out()
    print_out(dim("Defaults"))
    for value in defaults:
        _line(value, names)
    print_out(dim("rappd config show NAME tells what one does."))


def _line(value: Value, names: int) -> None:
    text = strip_control(_shown(value)) or dim("empty")
    source = "" if value.source == "default" else dim(value.source)
    lead = f"{value.setting.name:<{names}}"
    if cells(f"{lead}  {_shown(value)}  {value.source}") <= terminal_width():
        print_out(f"{lead}  {text}  {source}".rstrip())
        return
    print_out(f"{value.setting.name}  {source}".rstrip())
    print_out(f"  {text}")


def _one(values: list[Value]) -> None:
    (value,) = values
    setting = value.setting
    print_out(f"{setting.name} = {strip_control(_shown(value))}  {dim(value.source)}")
    when = "counts at once" if setting.live else "counts from the next start"
    fits = f" {setting.least} to {setting.most}." if setting.kind == "number" else ""
    print_out(f"  {wrapped(f'{setting.help}{fits} Variable {setting.variable}; {when}.', 2)}")


def _row(value: Value) -> dict[str, Any]:
    setting = value.setting
    return {
        "name": setting.name,
        "value": _shown(value),
        "from": value.source,
        "secret": setting.secret,
        "variable": setting.variable,
        "kind": setting.kind,
        "live": setting.live,
        "default": setting.default,
        "help": setting.help,
    }


def _shown(value: Value) -> str:
    if value.setting.secret:
        return "set" if value.text else ""
    return value.text


def _place(value: Value) -> str:
    return "the environment" if value.source == "environment" else value.source


def _origin(value: Value) -> str:
    return "the default" if value.source == "default" else f"from {_place(value)}"


def _warn_of_command(command: str) -> None:
    from rappd.notices.command import obstacle_to  # only who sets it needs it

    if (found := obstacle_to(command)) is not None:
        print_status(
            "note", f"It cannot be run now: {strip_control(found.what)}.", found.do, stream=sys.stderr
        )


def _asked(setting: Setting) -> str:
    """A value that was not typed with the command: asked for on a terminal, else the first line of stdin."""
    if interactive():
        answer: str = click.prompt(setting.name, hide_input=setting.secret, err=True)
        return answer
    line = "" if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not line:
        raise UsageProblemError("VALUE is missing.", do=f"rappd config set {setting.name} VALUE")
    return line
