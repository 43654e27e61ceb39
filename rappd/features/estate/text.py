"""Screens of an estate egg: the eggs in it, planned or hatched, and what becomes of the estate kept here."""

from __future__ import annotations

from typing import Any

from rappd.cli.console import arrow, command, dim, print_out, status_mark, strip_control
from rappd.cli.formatting import count

_PLANNED = {
    "adopted": "Its list becomes the estate of this home.",
    "merged": "Entries that yours lacks are added to your estate.",
    "kept apart": "It has another owner: your estate stays as it is.",
}
_DONE = {
    "adopted": "Its list is the estate of this home now.",
    "merged": "Your estate has its entries, too.",
    "kept apart": "It has another owner: your estate is as it was.",
}


def show_planned_members(plan: dict[str, Any]) -> None:
    """The eggs in an estate's plan, one line each. Nothing for other eggs."""
    for row in plan.get("members", ()):
        name = f"{strip_control(row['name'])}, {row['kind']}"
        if row["problem"]:
            print_out(f"{status_mark('bad')} {name}: {strip_control(row['problem'])}")
            continue
        made = row["plan"]
        parts = [
            f"{made[group]['count']} {word}"
            for group, word in (
                ("create", "new"),
                ("replace", "replaced"),
                ("keep", "unchanged"),
                ("quarantine", "for approval"),
                ("refuse", "rejected"),
            )
            if made[group]["count"]
        ]
        print_out(f"  {name}: {', '.join(parts) or 'hatches nowhere by itself'}")
    if text := _PLANNED.get(plan.get("estate", "")):
        print_out(f"  {text}")


def show_hatched_members(done: dict[str, Any]) -> None:
    """Shows the result of each egg in an estate, one line each. Nothing for other eggs."""
    for row in done.get("members", ()):
        name = strip_control(row["name"])
        if row["problem"]:
            print_out(f"{status_mark('bad')} {name}: {strip_control(row['problem'])}")
            if row["do"]:
                print_out(f"  {arrow()} {strip_control(row['do'])}")
            continue
        found = row["hatched"]
        written = sum(found[group]["count"] for group in ("create", "replace", "quarantine"))
        waits = found["quarantine"]["count"]
        told = f"{count(written, 'file')} placed" if row["receipt"] else "nothing had to be written"
        more = f", {waits} for approval" if waits else ""
        print_out(f"{status_mark('good')} {name}: {told}{more}")
        if row["receipt"]:
            print_out(f"  {dim('Undo:')} {command('rappd egg rollback ' + row['receipt'])}")
    if text := _DONE.get(done.get("estate", "")):
        print_out(f"  {text}")
