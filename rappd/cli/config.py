"""``rappd config``: settings and where each came from. Works with the daemon down."""

from __future__ import annotations

import sys

import click

from rappd.cli.daemon import Daemon
from rappd.cli.screen import arrow, command, dim, mark, note, print_json, say, table
from rappd.home import Home
from rappd.settings.load import Settings
from rappd.settings.write import find, write


@click.group()
def config() -> None:
    """Show and change settings."""


@config.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def show(name: str | None, as_json: bool) -> None:
    """Every setting, or one: its value and where it came from."""
    settings = Settings.load(Home.here())
    values = [settings.value(find(name).name)] if name else settings.all()
    rows = [
        (
            value.setting.name,
            ("set" if value.text else "") if value.setting.secret else value.text,
            value.source,
            value.setting.help,
        )
        for value in values
    ]
    if as_json:
        print_json(
            {
                "settings": [
                    {"name": key, "value": text, "from": source, "secret": value.setting.secret}
                    for (key, text, source, _), value in zip(rows, values, strict=True)
                ]
            }
        )
        return
    table(["SETTING", "VALUE", "FROM", "WHAT IT DOES"], rows, shrink=1)


@config.command("set")
@click.argument("name")
@click.argument("value")
def set_(name: str, value: str) -> None:
    """Write a setting down; a running daemon takes live ones over at once."""
    home = Home.here()
    setting = write(home, name, value)
    shown = "set" if setting.secret else value
    where = home.env_file if setting.secret else home.config
    say(f"{mark('good')} {setting.name} = {shown}  {dim(str(where))}")
    effective = Settings.load(home).value(setting.name)
    if effective.source == "environment":
        note(f"{mark('note', sys.stderr)} {setting.variable} in the environment wins over it.")
    daemon = Daemon(home)
    if daemon.running():
        daemon.post("/settings/reload")
        if not setting.live:
            note(f"{mark('note', sys.stderr)} It counts from the next start.")
            note(f"  {arrow(sys.stderr)} {command('rappd stop')}, then {command('rappd start')}")


@config.command()
def path() -> None:
    """Where the settings file lies."""
    say(str(Home.here().config))
