"""``rappd neighborhood snapshot``, ``snapshots``, ``drill`` and ``diff``. They work with the daemon down."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from rappd.cli.console import (
    print_json,
    print_json_line,
    print_out,
    print_status,
    status_mark,
    strip_control,
)
from rappd.cli.formatting import ago
from rappd.cli.neighborhood_home import ask_for_tokens, members_here, snapshots_here
from rappd.cli.tables import table
from rappd.features.eggs.cli_options import JSON
from rappd.features.snapshots.bars import machine_bars
from rappd.features.snapshots.schedule_cli import schedule_here, show_failing
from rappd.features.snapshots.text import show_apart, show_snapshot
from twins.byte_sizes import format_bytes

_PARTIAL = 7


@click.command()
@click.option("--out", "-o", default="", metavar="FILE", help="Where to; without it, among the home's eggs.")
@click.option("--name", default="", help="What to call it; without it, the date and time.")
@click.option("--only", multiple=True, metavar="MACHINE", help="Of the other machines, only this one.")
@click.option("--include-archived", is_flag=True, help="Archived twins, too.")
@click.option("--no-twins", is_flag=True, help="List the twins and leave their files behind.")
@click.option("--awake-only", is_flag=True, help="Leave out twins of this machine that are stopped.")
@click.option("--max-twin-bytes", type=click.IntRange(min=0), metavar="BYTES", help="Leave out larger twins.")
@click.option("--allow", multiple=True, metavar="ID", help="Let a likely secret travel, by its id.")
@click.option("--force", is_flag=True, help="Replace FILE.")
@click.option("--no-drill", is_flag=True, help="Do not try whether it can be restored.")
@JSON
def snapshot(
    out: str,
    name: str,
    only: tuple[str, ...],
    include_archived: bool,
    no_twins: bool,
    awake_only: bool,
    max_twin_bytes: int | None,
    allow: tuple[str, ...],
    force: bool,
    no_drill: bool,
    as_json: bool,
) -> int:
    """Back up all machines, this one and the others, into one file: a snapshot.

    Cut off, it goes on where it stopped. Keys and .env files stay behind. With --json, one event a line.
    """
    from neighborhoods.snapshot.manifest import MAX_TWIN_BYTES, SnapshotOptions
    from rappd.features.snapshots.members import no_way

    options = SnapshotOptions(
        include_archived=include_archived,
        include_twin_workspaces=not no_twins,
        include_stopped_twins=not awake_only,
        max_twin_bytes=MAX_TWIN_BYTES if max_twin_bytes is None else max_twin_bytes,
    )
    verbs, members = snapshots_here(), members_here()
    if not as_json:
        ask_for_tokens(members, only)
    with machine_bars(as_json=as_json) as tell:
        done = asyncio.run(
            verbs.snapshot(
                members.to_read(only),
                target=Path(out).expanduser().absolute() if out else None,
                name=name,
                options=options,
                allow=allow,
                overwrite=force,
                drill=not no_drill,
                tell=tell,
            )
        )
    if as_json:
        print_json_line({"event": "done", **done.as_json()})
    else:
        show_snapshot(done)
        for one in () if only else members.without_a_way():
            print_status("note", f"{one.name} is not in it: {no_way(one)}")
    drilled = done.record.drill
    if done.is_partial:
        return _PARTIAL
    return 1 if done.untried or (drilled is not None and not drilled.passed) else 0


@click.command()
@JSON
def snapshots(as_json: bool) -> None:
    """List the backups of all machines (snapshots), the newest first, and whether each can be restored."""
    from datetime import datetime
    from time import time

    found, scheduled = snapshots_here(writes=False).snapshots(), schedule_here()
    if as_json:
        print_json({**found, "schedule": scheduled})
        return
    show_failing(scheduled)
    if not found["snapshots"]:
        print_out("There is no snapshot yet. → rappd neighborhood snapshot")
        return
    now = time()
    rows = [
        [
            one["name"],
            ago(now - datetime.fromisoformat(one["taken_at"]).timestamp()),
            _state(one),
            format_bytes(one["size"]),
            str(one["machines"]),
            str(one["twins"]),
        ]
        for one in found["snapshots"]
    ]
    table(["SNAPSHOT", "TAKEN", "STATE", "SIZE", "MACHINES", "TWINS"], rows, shrink=5)


@click.command()
@click.argument("snapshot")
@JSON
def drill(snapshot: str, as_json: bool) -> int:
    """Hatch SNAPSHOT into a scratch folder, compare every file, and throw it away."""
    record = asyncio.run(snapshots_here().drill(snapshot))
    assert record.drill is not None
    if as_json:
        print_json({"snapshot": record.as_json()})
    elif record.drill.passed:
        print_out(
            f"{status_mark('good')} {strip_control(record.name)} can be restored: {record.drill.files} files."
        )
    else:
        print_out(f"{status_mark('bad')} {strip_control(record.name)}: {strip_control(record.drill.problem)}")
    if not as_json:
        show_apart(record)
    return 0 if record.drill.passed else 1


@click.command()
@click.argument("before")
@click.argument("after")
@JSON
def diff(before: str, after: str, as_json: bool) -> None:
    """Show the differences between two snapshots, by name or file."""
    from rappd.features.eggs.text import show_differences

    found = snapshots_here(writes=False).diff(before, after)
    show_differences(found, as_json=as_json)


def _state(one: dict[str, object]) -> str:
    drilled = one["drill"]
    if not one["there"]:
        return "file is gone"
    if not isinstance(drilled, dict):
        return "not tried"
    if not one["restorable"]:
        return f"cannot be restored: {strip_control(str(drilled['problem']))}"
    absent = sum(len(rows) for rows in (one["missing"], one["left_behind"]) if isinstance(rows, list | tuple))
    lacks = f", lacks {absent}" if absent else ""
    return f"restorable, {str(drilled['at'])[:10]}{lacks}"
