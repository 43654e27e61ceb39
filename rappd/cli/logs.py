"""``rappd logs``: what the daemon and the agents said."""

from __future__ import annotations

import json
import sys

import click

from rappd.cli.console import print_err, print_json, print_out, strip_control
from rappd.daemon.home import Home
from rappd.daemon.log import follow as follow_log
from rappd.daemon.log import tail


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on as lines come.")
@click.option(
    "-n",
    "--lines",
    type=click.IntRange(0, 100_000),
    default=50,
    show_default=True,
    help="How many to begin with.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object; with -f one per line.")
def logs(follow: bool, lines: int, as_json: bool) -> None:
    """Show the log."""
    path = Home.here().log
    if follow:
        for line in follow_log(path, lines):
            if as_json:
                click.echo(json.dumps({"line": line}))
            else:
                print_out(strip_control(line))
            sys.stdout.flush()
        return
    found = tail(path, lines)
    if as_json:
        print_json({"log": found})
    elif not found and lines:
        print_err("The log is empty.")
    else:
        for line in found:
            print_out(strip_control(line))
