"""``rappd neighborhood schedule``: snapshots at set times. Without arguments it works with the daemon down."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from rappd.cli.console import arrow, command, dim, print_json, print_out, status_mark, strip_control
from rappd.cli.formatting import count
from rappd.cli.home_client import HomeClient
from rappd.control_client import ControlClient
from rappd.daemon.home import Home
from rappd.features.eggs.cli_options import JSON


@click.command()
@click.argument("rule", nargs=-1, metavar="[RULE|off]")
@click.option(
    "--keep", type=click.IntRange(min=1), metavar="N", help="Keep the last N whole ones; 7 without it."
)
@click.option(
    "--zone", default=None, metavar="ZONE", help="Time zone, like Europe/Berlin; without it, this machine's."
)
@JSON
def schedule(rule: tuple[str, ...], keep: int | None, zone: str | None, as_json: bool) -> None:
    """Back up all machines (a snapshot) at set times: daily 03:00, weekly sunday 03:00, every 6 hours; off ends it.

    What was missed while rappd was stopped runs once at its next start. After each whole one, older ones that
    the schedule made are removed, but for the last N and the last restorable one. Without RULE, show it.
    """
    text = " ".join(rule)
    if not text and keep is None and zone is None:
        found = schedule_here()
    elif text.casefold() == "off":
        found = ControlClient(Home.here()).do("schedule.switch_off")["schedule"]
    else:
        found = _set(text, keep, zone)
    if as_json:
        print_json({"schedule": found})
    else:
        show_schedule(found)


def schedule_here() -> dict[str, Any] | None:
    """The schedule of this home, with the daemon up or down. Raises ``StoreError``."""
    found: dict[str, Any] | None = HomeClient(Home.here(), reads=True).do("schedule.show")["schedule"]
    return found


def show_schedule(found: dict[str, Any] | None) -> None:
    """Shows the schedule: its rule, next moment and last outcome."""
    if found is None:
        print_out("No snapshots are scheduled.")
        print_out(f"  {arrow()} {command('rappd neighborhood schedule daily 03:00')}")
        return
    zone = f" ({strip_control(found['zone'])})" if found["zone"] else ""
    print_out(
        f"{strip_control(found['rule'])}{zone}, keeps the last {count(found['keep'], 'whole snapshot')}"
    )
    if found["missed"]:
        print_out(f"{status_mark('note')} {_local(found['next'])} was missed: rappd isn't running.")
        print_out(f"  {arrow()} {command('rappd start')}; it runs then")
    else:
        print_out(f"  Next  {_local(found['next'])}")
    if not found["last"]:
        print_out(dim("  It has not run yet."))
    elif found["outcome"]:
        show_failing(found)
    else:
        print_out(f"{status_mark('good')} Last  {_local(found['last'])}")


def show_failing(found: dict[str, Any] | None) -> None:
    """Shows since when the schedule fails, and why; nothing when it does not."""
    if found is not None and found["outcome"]:
        since = f"since {_local(found['failed_since'])}"
        print_out(f"{status_mark('bad')} Scheduled snapshots fail {since}: {strip_control(found['outcome'])}")


def _set(rule: str, keep: int | None, zone: str | None) -> dict[str, Any]:
    """Sets the schedule; what is not said stays as it is."""
    daemon = ControlClient(Home.here())
    present = daemon.do("schedule.show")["schedule"] or {}
    said = {"rule": rule or present.get("rule", ""), "keep": keep or present.get("keep"), "zone": zone}
    if zone is None:
        said["zone"] = present.get("zone")
    body = {key: value for key, value in said.items() if value is not None}
    found: dict[str, Any] = daemon.do("schedule.set", **body)["schedule"]
    return found


def _local(moment: str) -> str:
    return f"{datetime.fromisoformat(moment).astimezone():%a %d %b %Y %H:%M}"
