"""Foreign programs as the terminal shows them."""

from __future__ import annotations

import time
from typing import Any

from rappd.cli.console import print_out, strip_control
from rappd.cli.formatting import ago
from rappd.cli.tables import Table

Row = dict[str, Any]


def listing(found: Row) -> None:
    """Prints the programs as a table, and what is switched off or narrowed."""
    _PROGRAMS(found["programs"])
    off = [one["title"] for one in found["protocols"] if not one["on"]]
    if off:
        print_out(f"Switched off: {', '.join(off)}.")
    for one in found["protocols"]:
        if one["on"] and one["agents"]:
            print_out(f"{one['title']} may use here: {strip_control(', '.join(one['agents']))}.")


def shown(row: Row) -> str:
    """A program by its own name, and the owner's for its key."""
    name = strip_control(row["name"]) or "a program"
    if row["where"] == "refused":
        return "not let in"
    return f"{name} ({strip_control(row['by'])})" if row["by"] else name


def _cost(row: Row) -> str:
    tokens = f"{row['tokens']}" if row["tokens"] else ""
    return f"{tokens} ${row['cost_usd']:.4f}".strip() if row["cost_usd"] else tokens


def _refused(row: Row) -> str:
    return f"{strip_control(row['error'])} ({ago(time.time() - row['error_at'])})" if row["error"] else ""


_PROGRAMS = Table(
    ("PROGRAM", shown),
    ("OVER", "title"),
    ("LAST", lambda row: ago(time.time() - row["last"])),
    ("TURNS", lambda row: str(row["turns"])),
    ("TOKENS", _cost),
    ("LAST REFUSED", _refused),
    none=("No program connected yet.\n  ", "rappd help programs"),
    shrink=5,
    prose=True,
)
