"""Twins on the screen: the lists, one in full, and families as trees."""

from __future__ import annotations

import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from rappd.cli.console import (
    arrow,
    command,
    dim,
    print_out,
    print_status,
    status_mark,
    strip_control,
    terminal_width,
    utf8,
    wrapped,
)
from rappd.cli.formatting import ago, count, tilde
from rappd.cli.tables import cells, middle, table
from twins.byte_sizes import format_bytes

Row = dict[str, Any]

_STATES = {"awake": "running", "asleep": "stopped"}
"""Words for the states in answers."""
_DIGITS = 4  # of a rappid that are enough to be understood
_PLAIN = re.compile(r"[\w][\w-]*")


def show_twins(found: Row) -> None:
    """The active ones, then every folder that cannot be read."""
    rows = found["twins"]
    if rows:
        now = time.time()
        shown = [
            [
                name,
                row["kind"],
                _STATES.get(row["state"], row["state"]),
                str(row["port"] or ""),
                "?" if row["memories"] is None else f"{row['memories']:,}",
                "never" if row["last_talk"] is None else ago(now - row["last_talk"]),
            ]
            for name, row in zip(_told_apart(rows, "key"), rows, strict=True)
        ]
        table(["TWIN", "KIND", "STATE", "PORT", "MEMORIES", "LAST TALK"], shown)
    elif not found["unreadable"]:
        print_out("No twin lives here yet.")
        print_out(f"  {arrow()} {command('rappd twins new NAME')}")
    if rows and found["unreadable"]:
        print_out()
    for one in found["unreadable"]:
        what = f"{tilde(one['folder'])} cannot be read: {one['problem']}"
        print_status("bad", what, "look at the folder; all others are listed")


def show_archived(rows: Sequence[Row]) -> None:
    """Prints the archived twins, the longest archived first."""
    if not rows:
        print_out("No twin is archived.")
        return
    shown = [
        [name, row["kind"], _since(row["archived_at"]), _bytes(row), row.get("archived_reason", "")]
        for name, row in zip(_told_apart(rows, "hash"), rows, strict=True)
    ]
    table(["TWIN", "KIND", "ARCHIVED", "SIZE", "REASON"], shown)
    _notes(rows)


def show_purged(rows: Sequence[Row]) -> None:
    """Prints the purged twins, the oldest first."""
    if not rows:
        print_out("No twin was purged.")
        return
    shown = [
        [name, str(row.get("kind", "")), _since(row.get("purged_at")), str(row.get("purged_reason", ""))]
        for name, row in zip(_told_apart(rows, "hash"), rows, strict=True)
    ]
    table(["TWIN", "KIND", "PURGED", "REASON"], shown)
    _notes(rows)


def show_chosen(rows: Sequence[Row]) -> None:
    """The twin that a verb would mean."""
    table(
        ["TWIN", "KIND"],
        [[name, row["kind"]] for name, row in zip(_told_apart(rows, "hash"), rows, strict=True)],
    )


def show_one(twin: Row) -> None:
    """One twin, all that is known of it."""
    state = (
        f"running on port {twin['port']}" if twin["port"] else str(_STATES.get(twin["state"], twin["state"]))
    )
    talked = "never" if twin["last_talk"] is None else ago(time.time() - twin["last_talk"])
    lives = f", {count(twin['incarnations'], 'upgrade')} since" if twin["incarnations"] else ""
    print_out(f"{strip_control(twin['name'])}  {dim(strip_control(twin['kind']) + ', ' + state)}")
    print_out()
    for label, value in (
        ("Rappid", twin["rappid"]),
        ("Born", f"{_day(twin['born_at'])}{lives}"),
        ("Parent", twin["parent_rappid"]),
        ("Memories", "cannot be read" if twin["memories"] is None else f"{twin['memories']:,}"),
        ("Talked", talked),
        ("Model", twin.get("model", "")),
        ("Buddy", _life(twin.get("buddy"))),
        ("Agents", ", ".join(twin["agents"])),
        ("Services", ", ".join(twin["services"])),
        ("Organs", ", ".join(twin["organs"])),
        ("Senses", ", ".join(twin["senses"])),
        ("Folder", tilde(twin["path"])),
    ):
        if value:
            print_out(f"  {label:<10}{wrapped(strip_control(str(value)), 12)}")


def _life(buddy: Row | None) -> str:
    """ "juvenile, happy, energy 80, experience 60"; "" for all who are no buddies."""
    if not buddy or buddy["stage"] == "egg":
        return "an egg; it hatches with its first food" if buddy else ""
    return f"{buddy['stage']}, {buddy['feels']}, energy {buddy['energy']:g}, experience {buddy['xp']:g}"


def show_history(found: Row) -> None:
    """The souls before the one in force."""
    if not found["history"]:
        print_out(f"{strip_control(found['name'])} has had one soul only.")
        return
    rows = [[str(kept["number"]), _when(kept["at"]), kept["reason"]] for kept in found["history"]]
    table(["SOUL", "REPLACED", "REASON"], rows, shrink=2, prose=True, whole=(0, 1))


def show_tree(rows: Sequence[Row]) -> None:
    """Families, each from its root down; ``rows`` in preorder with their ``depth``."""
    if not rows:
        print_out("No twin lives here yet.")
        return
    width = terminal_width()
    names = _told_apart(rows, "key")
    lines = []
    for branch, name, row in zip(_branches([row["depth"] for row in rows]), names, rows, strict=True):
        start = _branch_end(branch, width // 2)
        lines.append((f"{start}{middle(strip_control(name), max(12, width - cells(start)))}", _standing(row)))
    column = min(max(cells(left) for left, _ in lines) + 2, width * 3 // 5)
    for left, right in lines:
        gap = " " * max(2, column - cells(left))
        print_out(f"{left}{gap}{dim(right)}" if cells(f"{left}{gap}{right}") <= width else left)


def show_done(found: Row, then: str = "") -> None:
    """Shows the result for a twin, and the command that may come ``then``."""
    print_out(f"{status_mark('good')} {strip_control(found['message'])}")
    if then:
        typed = found["key"][:12] if found.get("namesakes") else handle(found["name"], found["key"])
        print_out(f"  {arrow()} {command(f'{then} {typed}')}")


def handle(name: str, key: str) -> str:
    """Returns the text that selects a twin: its name if it is one plain word, else the start of its rappid."""
    return name if _PLAIN.fullmatch(name) else key[:12]


def _standing(row: Row) -> str:
    """ "personal", "personal, archived", "purged", "elsewhere"."""
    state = "" if row["state"] == "active" else row["state"]
    looped = "descends from itself" if row["looped"] else ""
    return ", ".join(strip_control(word) for word in (row["kind"], state, looped) if word)


def _branches(depths: Sequence[int]) -> list[str]:
    """For each line of a tree what is drawn before its name."""
    tee, corner, bar = ("├─ ", "└─ ", "│  ") if utf8(sys.stdout) else ("|- ", "`- ", "|  ")
    drawn = []
    more: list[bool] = []  # by depth: whether a line further down continues there
    for depth in reversed(depths):
        more = [*more[: depth + 1], *[False] * (depth + 1 - len(more))]
        above = "".join(bar if goes_on else "   " for goes_on in more[1:depth])
        drawn.append(above + (tee if more[depth] else corner) if depth else "")
        more[depth] = depth > 0
    return drawn[::-1]


def _branch_end(branch: str, room: int) -> str:
    """The end of a branch that is too long for the screen."""
    if cells(branch) <= room:
        return branch
    dots = "… " if utf8(sys.stdout) else "... "
    keep = max(1, (room - cells(dots)) // 3)
    return dots + branch[-3 * keep :]


def _told_apart(rows: Sequence[Row], key: str) -> list[str]:
    """Names; where several have the same, each with as much of its rappid as tells it from all others."""
    names = [str(row.get("name") or row[key][:16]) for row in rows]
    often = Counter(name.casefold() for name in names)
    keys = sorted({str(row[key]) for row in rows})
    starts = {
        one: _start(one, keys[max(0, at - 1) : at] + keys[at + 1 : at + 2]) for at, one in enumerate(keys)
    }
    return [
        f"{name} ({starts[row[key]]})" if often[name.casefold()] > 1 and row[key] else name
        for name, row in zip(names, rows, strict=True)
    ]


def _start(key: str, neighbours: Iterable[str]) -> str:
    for digits in range(_DIGITS, len(key)):
        if not any(other.startswith(key[:digits]) for other in neighbours):
            return key[:digits]
    return key


def _notes(rows: Sequence[Row]) -> None:
    for row in rows:
        if row.get("note"):
            print_status("note", f"{strip_control(str(row.get('name') or row['hash'][:16]))}: {row['note']}")


def _bytes(row: Row) -> str:
    known = row["last_known"].get("workspace_bytes")
    return "" if known is None else format_bytes(known)


def _since(moment: object) -> str:
    at = _parsed(moment)
    return "" if at is None else ago(time.time() - at.timestamp())


def _when(moment: str) -> str:
    at = _parsed(moment)
    return moment if at is None else at.astimezone().strftime("%d %b %Y %H:%M").lstrip("0")


def _day(moment: str) -> str:
    at = _parsed(moment)
    return moment if at is None else at.astimezone().strftime("%d %b %Y").lstrip("0")


def _parsed(moment: object) -> datetime | None:
    try:
        return datetime.fromisoformat(str(moment))
    except ValueError:
        return None
