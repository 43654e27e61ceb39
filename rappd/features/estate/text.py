"""Screens of the estate and of its egg: what is in it, the eggs planned or hatched, and what becomes of the list here."""

from __future__ import annotations

from typing import Any

from rappd.cli.console import arrow, command, dim, print_out, status_mark, strip_control
from rappd.cli.formatting import count
from rappd.cli.tables import table

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
        result = f"{count(written, 'file')} placed" if row["receipt"] else "nothing had to be written"
        more = f", {waits} for approval" if waits else ""
        print_out(f"{status_mark('good')} {name}: {result}{more}")
        if row["receipt"]:
            print_out(f"  {dim('Undo:')} {command('rappd egg rollback ' + row['receipt'])}")
    if text := _DONE.get(done.get("estate", "")):
        print_out(f"  {text}")


def show_estate(found: dict[str, Any]) -> None:
    """The screen of ``rappd estate show``."""
    _show_own(found)
    for row in found["kept"]:
        print_out(
            f"Kept as data: {row['key'][:16]}, {count(len(row['eggs']), 'egg')}, "
            f"{count(row['created'] + row['member'], 'entry').replace('entrys', 'entries')}"
        )
        if row["trouble"]:
            print_out(f"{status_mark('note')} {strip_control(row['trouble'])}")
        elif row["eggs"]:
            print_out(f"  {arrow()} {command('rappd estate hatch ' + row['key'][:16])}")


def _show_own(found: dict[str, Any]) -> None:
    estate = found["estate"]
    if estate is None:
        print_out("There is no estate yet.")
        print_out(f"  {arrow()} {command('rappd estate rebuild')}")
        return
    print_out(f"Owner: {strip_control(estate['owner']['rappid'] or 'nobody yet')}")
    doors = {one["rappid"]: one for one in found["doors"]}
    rows = [
        [
            strip_control(entry["rappid"]),
            "member" if part == "member" else "listed" if entry["via"] == "manual" else "made",
            entry["via"],
            strip_control(doors[entry["rappid"]].get("front", "")),
        ]
        for part in ("created", "member")
        for entry in estate[part]
    ]
    if rows:
        table(["RAPPID", "AS", "BY", "DOOR"], rows, shrink=0)
    else:
        print_out("It is empty.")
        print_out(f"  {arrow()} {command('rappd estate rebuild')}")
