"""What a terminal shows: marks, colours, tables, and errors in one shape."""

from __future__ import annotations

import functools
import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any, Literal

import click

Verdict = Literal["good", "note", "bad"]

_MARKS: dict[Verdict, tuple[str, str, str]] = {
    "good": ("✓", "ok", "green"),
    "note": ("!", "!", "yellow"),
    "bad": ("✗", "x", "red"),
}
_GAP = "  "


def say(text: str = "") -> None:
    """An answer, on stdout."""
    click.echo(_plain(text, sys.stdout), color=_colours(sys.stdout))


def note(text: str = "") -> None:
    """Progress, a question or a hint, on stderr."""
    click.echo(_plain(text, sys.stderr), err=True, color=_colours(sys.stderr))


def print_json(body: dict[str, Any]) -> None:
    """One object for scripts."""
    click.echo(json.dumps(body, ensure_ascii=False, indent=2, default=str))


def complain(what: str, do: str, code: str, *, as_json: bool) -> None:
    """An error on stderr: what happened, then what to do."""
    if as_json:
        click.echo(json.dumps({"error": what, "do": do, "code": code}, ensure_ascii=False), err=True)
        return
    note(f"{mark('bad', sys.stderr)} {what}")
    if do:
        note(f"  {arrow(sys.stderr)} {command(do) if do.startswith('rappd ') else do}")


def mark(verdict: Verdict, stream: IO[str] | None = None) -> str:
    """✓ ! or ✗, in its colour; words where the terminal cannot show them."""
    sign, plain, colour = _MARKS[verdict]
    return click.style(sign if _utf8(stream or sys.stdout) else plain, fg=colour)


def arrow(stream: IO[str] | None = None) -> str:
    """→, or -> where the terminal cannot show it."""
    return "→" if _utf8(stream or sys.stdout) else "->"


def command(text: str) -> str:
    """A command as this shell can run it: ``rappd …`` or ``.venv/bin/rappd …``."""
    return click.style(text.replace("rappd", _program(), 1), fg="cyan")


def dim(text: str) -> str:
    """Secondary detail."""
    return click.style(text, dim=True)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, shrink: int = 0) -> None:
    """Columns that fit the terminal: the column ``shrink`` loses its middle, then the rightmost go."""
    lines = [list(header), *[[str(cell) for cell in row] for row in rows]]
    width = terminal_width()
    widths = [max(len(click.unstyle(line[column])) for line in lines) for column in range(len(header))]
    room = width - (sum(widths) - widths[shrink]) - len(_GAP) * (len(widths) - 1)
    if room < widths[shrink]:
        widths[shrink] = max(12, room)
    while len(widths) > 1 and sum(widths) + len(_GAP) * (len(widths) - 1) > width:
        widths.pop()
    for number, line in enumerate(lines):
        cells = [_fit(cell, size) for cell, size in zip(line, widths, strict=False)]
        text = _GAP.join(cells).rstrip()
        say(dim(text) if number == 0 else text)


def middle(text: str, size: int) -> str:
    """``text`` in at most ``size`` columns; a long one loses its middle."""
    if len(text) <= size:
        return text
    ellipsis = "…" if _utf8(sys.stdout) else ".."
    left = (size - len(ellipsis) + 1) // 2
    right = size - len(ellipsis) - left
    return f"{text[:left]}{ellipsis}{text[len(text) - right :] if right else ''}"


def terminal_width() -> int:
    """Columns to write in: the terminal's, 80 without one."""
    return shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else 80


def interactive() -> bool:
    """Whether there is somebody to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def ago(seconds: float) -> str:
    """ "12 s ago", "2 min ago", "3 h ago", "5 days ago"."""
    seconds = max(0, seconds)
    for limit, unit, size in ((60, "s", 1), (3600, "min", 60), (86400, "h", 3600)):
        if seconds < limit:
            return f"{int(seconds / size)} {unit} ago"
    days = int(seconds / 86400)
    return f"{days} day{'s' if days != 1 else ''} ago"


def size(count: float) -> str:
    """ "212 GB", "3.1 MB", "410 bytes"."""
    if count < 1000:
        return f"{int(count)} bytes"
    for unit in ("kB", "MB", "GB", "TB"):
        count /= 1000
        if count < 1000 or unit == "TB":
            break
    return f"{count:.1f} {unit}" if count < 10 else f"{count:.0f} {unit}"


def tilde(path: Path) -> str:
    """A path with the home folder as ``~``."""
    home = str(Path.home())
    text = str(path)
    return f"~{text[len(home) :]}" if text == home or text.startswith(home + os.sep) else text


def _fit(cell: str, size: int) -> str:
    bare = click.unstyle(cell)
    shown = cell if len(bare) <= size else middle(bare, size)
    return shown + " " * (size - len(click.unstyle(shown)))


def _plain(text: str, stream: IO[str]) -> str:
    if _utf8(stream):
        return text
    for sign, word in (
        ("…", "..."),
        ("→", "->"),
        ("—", "-"),
        ("✓", "ok"),
        ("✗", "x"),
        ("●", "*"),
        ("·", "-"),
    ):
        text = text.replace(sign, word)
    return text.encode("ascii", "replace").decode()


def _colours(stream: IO[str]) -> bool:
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def _utf8(stream: IO[str]) -> bool:
    return (getattr(stream, "encoding", "") or "").lower().replace("-", "") == "utf8"


@functools.cache
def _program() -> str:
    found = shutil.which("rappd")
    here = Path(sys.argv[0]).absolute()
    if here.name != "rappd":
        here = Path(sys.executable).parent / "rappd"
    if found and Path(found).resolve() == here.resolve():
        return "rappd"
    try:
        return str(here.relative_to(Path.cwd()))
    except ValueError:
        return str(here)
