"""Tells this machine's home from another's, whatever way leads there."""

from __future__ import annotations

from pathlib import Path


def own_place(home: Path) -> str:
    """The machine's id and the home's number on its disk, as the far side tells its own."""
    try:
        machine = Path("/etc/machine-id").read_text().strip()  # the same in containers, whose homes differ
    except OSError:
        machine = ""
    try:
        return f"{machine} {home.stat().st_ino}".strip()
    except OSError:
        return "none"
