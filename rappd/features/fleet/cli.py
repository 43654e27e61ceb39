"""``rappd fleet``: all machines at once: status, archive_estate. It works with the daemon down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from rappd.cli.command_group import SuggestingGroup
from rappd.cli.console import arrow, command, dim, print_out, status_mark, strip_control
from rappd.cli.formatting import count
from rappd.cli.home_client import HomeClient
from rappd.cli.printer import Printer
from rappd.cli.progress import progress
from rappd.cli.tables import Table
from rappd.daemon.home import Home
from rappd.errors import UsageProblemError
from rappd.features.snapshots.members_cli import variables_of_terminal
from twins.byte_sizes import format_bytes

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PARTIAL = 7
_NAMES = 8
_STATUS_SECONDS = 20.0
_ARCHIVE_SECONDS = 60.0
_MORE_SECONDS = 600.0  # twins here may be large, and nothing of this machine has a limit
_STATES = {"awake": "running"}


@click.group(cls=SuggestingGroup)
def fleet() -> None:
    """All your machines at once: how they are, and archiving twins on every one."""


def _timeout(usual: float) -> Callable[[_Command], _Command]:
    return click.option(
        "--timeout",
        type=click.FloatRange(0, 600, min_open=True),
        default=usual,
        metavar="SECONDS",
        help=f"The time that each machine has; {usual:g} without it.",
    )


@fleet.command()
@_timeout(_STATUS_SECONDS)
def status(timeout: float, printer: Printer) -> int:
    """Ask every machine how it is: health, version, disk, twins, last restorable snapshot. Nothing is written."""
    with progress("Asking all machines…"):
        home = HomeClient(Home.here(), reads=True, timeout=timeout + _MORE_SECONDS)
        found = home.do("fleet.ask", timeout=timeout, variables=variables_of_terminal(home))
    rows = found["fleet"]
    printer.result(found, _show_status, rows)
    return 0 if all(row["reachable"] for row in rows if row["mine"]) else _PARTIAL


@fleet.command("archive_estate")
@click.option("--filter", "clauses", metavar="CLAUSE=VALUE", multiple=True, help="All that fit; repeatable.")
@click.option("--confirm", is_flag=True, help="Do it; without this, only say which.")
@click.option("--here", is_flag=True, help="On this machine alone.")
@click.option("--reason", default="", help="Why; it is kept.")
@_timeout(_ARCHIVE_SECONDS)
def archive_estate(
    clauses: tuple[str, ...], confirm: bool, here: bool, reason: str, timeout: float, printer: Printer
) -> int:
    """Set aside the twins that fit, on this machine and all others. Without --confirm, only say which.

    Clauses, all of which must hold: kind=KIND, name_prefix=TEXT, name_regex=PATTERN,
    stopped_for_days=N, exclude_kinds=KIND,KIND. Nothing is rolled back when a machine does not answer: rerun,
    or there: rappd twins unarchive NAME.
    """
    from twins.lifecycle.selection import Selection

    if not clauses:
        raise UsageProblemError(
            "Say which twins.", do="rappd fleet archive_estate --filter stopped_for_days=30"
        )
    matching = Selection.from_options(clauses).as_filter()
    body = {"filter": matching, "confirm": confirm, "here": here, "reason": reason, "timeout": timeout}

    with progress("Asking all machines…"):
        home = HomeClient(Home.here(), reads=not confirm, timeout=timeout + _MORE_SECONDS)
        found = home.do("fleet.archive_estate", **body, variables=variables_of_terminal(home))
    printer.result(found, _show_archived, found, clauses)
    if found["ok"]:
        return 0
    return _PARTIAL if any(_did(row) for row in found["per_peer"]) else 1


def _did(row: dict[str, Any]) -> bool:
    """True when a machine answered, and did something or had nothing to do."""
    return bool(row["ok"] or row.get("archived_count") or row.get("put_off"))


_MACHINES = Table(
    ("MACHINE", "name"),
    (
        "STATE",
        lambda row: (
            _STATES.get(row["health"], row["health"]) or ("here" if row["reachable"] else "no answer")
        ),
    ),
    ("RAPPD", lambda row: row["rappd_version"] or "-"),
    ("DISK FREE", lambda row: format_bytes(row["free_bytes"]) if row["free_bytes"] >= 0 else "-"),
    ("TWINS", lambda row: "-" if row["twins"] is None else row["twins"]),
    ("IN SNAPSHOT OF", lambda row: row["last_snapshot"]["taken_at"][:10] if row["last_snapshot"] else "none"),
)


def _show_status(rows: list[dict[str, Any]]) -> None:
    _MACHINES(rows)
    for row in rows:
        for problem in row["problems"]:
            print_out(f"{status_mark('note')} {strip_control(row['name'])}: {strip_control(problem)}")
        if row["detail"]:
            mark = status_mark("note" if row["reachable"] or not row["mine"] else "bad")
            print_out(f"{mark} {_said_of(row['name'], row['detail'])}")
    if any(row["mine"] and row["last_snapshot"] is None for row in rows):
        print_out(f"  {arrow()} {command('rappd neighborhood snapshot')}")


def _show_archived(found: dict[str, Any], clauses: tuple[str, ...]) -> None:
    is_dry = found["mode"] == "dry-run"
    for row in found["per_peer"]:
        name = "this machine" if row["peer"] == "self" else strip_control(row["peer"])
        if "error" in row:
            print_out(f"{status_mark('bad')} {_said_of(name, row['error'])}")
            continue
        twins = row["would_archive"] if is_dry else row["archived"]
        mark = status_mark("good" if row["ok"] else "note")
        print_out(f"{mark} {name}: {_named(twins)}{' would be archived' if is_dry and twins else ''}")
        for twin in row.get("put_off", ()):
            print_out(dim(f"    {strip_control(twin['name'])} follows as soon as it has answered"))
        for one in row["errors"][:_NAMES]:
            print_out(f"    {status_mark('bad')} {strip_control(one['name'])}: {strip_control(one['error'])}")
    if is_dry:
        words = " ".join(f"--filter {_quoted(text)}" for text in clauses)
        onward = command(f"rappd fleet archive_estate {words} --confirm")
        print_out(f"Nothing was done. {arrow()} {onward}")


def _said_of(name: str, text: str) -> str:
    """A sentence about a machine, which it names once."""
    text = strip_control(text)
    return text if text.startswith((f"{name} ", f"{name}:", f"{name}'")) else f"{strip_control(name)}: {text}"


def _named(twins: list[dict[str, Any]]) -> str:
    if not twins:
        return "no twin"
    names = ", ".join(strip_control(str(twin["name"])) for twin in twins[:_NAMES])
    return f"{count(len(twins), 'twin')}: {names}{', …' if len(twins) > _NAMES else ''}"


def _quoted(text: str) -> str:
    import shlex

    return shlex.quote(strip_control(text))
