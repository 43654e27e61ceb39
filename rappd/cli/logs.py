"""``rappd logs``: what the daemon and the agents said."""

from __future__ import annotations

import time

import click

from rappd.cli.screen import say
from rappd.home import Home
from rappd.log import tail


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come.")
@click.option("-n", "--lines", default=50, show_default=True, help="How many to begin with.")
def logs(follow: bool, lines: int) -> None:
    """Show the log."""
    path = Home.here().log
    found = tail(path, lines)
    if not found and not follow:
        say("The log is empty.")
    for line in found:
        say(line)
    if not follow:
        return
    position = path.stat().st_size if path.exists() else 0
    while True:
        time.sleep(0.2)
        if not path.exists():
            continue
        if path.stat().st_size < position:
            position = 0  # the log was rotated
        with path.open("rb") as file:
            file.seek(position)
            for raw in file:
                if not raw.endswith(b"\n"):
                    break
                position += len(raw)
                say(raw.decode("utf-8", "replace").rstrip("\n"))
