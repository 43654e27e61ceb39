"""Amounts, times and paths as text for people."""

from __future__ import annotations

import os
from pathlib import Path

NOT_AS_ROOT = "adduser rappd, then as that account: rappd service install"
"""The way to run rappd as an account of its own."""


def count(number: int, one: str, many: str = "") -> str:
    """ "1 agent", "3 agents"."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def phones(registered: int, connected: int) -> str:
    """ "off", "1, connected", "2, one connected"."""
    if registered < 2:
        return "off" if not registered else f"1, {'connected' if connected else 'not connected'}"
    return f"{registered}, {('none', 'one')[connected] if connected < 2 else connected} connected"


def ago(seconds: float) -> str:
    """ "12 s ago", "2 min ago", "3 h ago", "5 days ago"."""
    seconds = max(0, seconds)
    for limit, unit, size_of_it in ((60, "s", 1), (3600, "min", 60), (86400, "h", 3600)):
        if seconds < limit:
            return f"{int(seconds / size_of_it)} {unit} ago"
    return f"{count(int(seconds / 86400), 'day')} ago"


def took(seconds: float) -> str:
    """ "8 ms", "0.8 s", "12 s", "2 min 5 s"."""
    if seconds < 0.05:
        return f"{max(1, round(seconds * 1000))} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 119.5:
        return f"{seconds:.0f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"


def tilde(path: Path | str) -> str:
    """A path with the home folder as ``~``."""
    home = str(Path.home())
    text = str(path)
    return f"~{text[len(home) :]}" if text == home or text.startswith(home + os.sep) else text


def sentence(text: str) -> str:
    """The first sentence, on one line, without its full stop."""
    line = " ".join(text.split())
    for end in (". ", "! ", "? "):
        line = line.split(end, 1)[0] + (end[0] if end in line and end != ". " else "")
    return line.rstrip(".")
