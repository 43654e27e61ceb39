"""Terminal output: marks, colours, commands, and errors in one shape."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import sys
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Literal

import click

Verdict = Literal["good", "note", "bad"]

_MARKS: dict[Verdict, tuple[str, str, str]] = {
    "good": ("✓", "ok", "green"),
    "note": ("!", "!", "yellow"),
    "bad": ("✗", "x", "red"),
}
_PLAIN = {
    "…": "...", "→": "->", "—": "-", "–": "-", "✓": "ok", "✗": "x", "●": "*", "·": "-", "•": "-",
    "“": '"', "”": '"', "‘": "'", "’": "'",
}  # fmt: skip
# C0 less newline and tab, DEL, C1, and what reorders text: foreign words may not steer a terminal.
_STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_COERCED = ("C.UTF-8", "C.utf8")


def print_out(text: str = "") -> None:
    """An answer, on stdout."""
    click.echo(plain(text, sys.stdout), color=colours(sys.stdout))


def print_err(text: str = "") -> None:
    """Progress, a question or a hint, on stderr. A full or closed stderr changes nothing of what is done."""
    with contextlib.suppress(OSError):
        click.echo(plain(text, sys.stderr), err=True, color=colours(sys.stderr))


def print_json(body: Mapping[str, Any]) -> None:
    """One object for scripts."""
    import orjson

    try:
        octets = orjson.dumps(body, default=str, option=orjson.OPT_INDENT_2) if _encodes(sys.stdout) else b""
    except TypeError:  # a large integer, or half of a character
        octets = b""
    click.echo(octets or json.dumps(body, indent=2, default=str))


def print_error(
    what: str, do: str, code: str, *, as_json: bool, more: Mapping[str, Any] | None = None
) -> None:
    """An error on stderr: what happened, then what to do. ``more`` is said besides as JSON."""
    if as_json:
        body = {**(more or {}), "error": what, "do": do.replace("`", ""), "code": code}
        with contextlib.suppress(OSError):
            click.echo(json.dumps(body, ensure_ascii=not _encodes(sys.stderr)), err=True)
        return
    print_status("bad", what, do, stream=sys.stderr)


def print_status(verdict: Verdict, what: str, do: str = "", *, stream: IO[str] | None = None) -> None:
    """``✗ what`` and, below it, ``→ do``; on stdout unless told otherwise."""
    stream = stream or sys.stdout
    out = print_err if stream is sys.stderr else print_out
    sign = status_mark(verdict, stream)
    lead = len(click.unstyle(sign)) + 1
    what = strip_control(what)
    out(f"{sign} {wrapped(what if '. ' in what else what.rstrip('.'), lead, stream=stream)}")
    if do:
        out(f"  {arrow(stream)} {advice(do, 3 + len(arrow(stream)), stream=stream)}")


def advice(do: str, indent: int, *, stream: IO[str] | None = None) -> str:
    """Returns advice with its commands as this shell can run them, in cyan and never broken."""
    text = (
        _command_pattern().sub(lambda found: f"`{found[0]}`", strip_control(do))
        if "`" not in do
        else strip_control(do)
    )
    pieces = text.rstrip(".").split("`")
    commands = [_runnable(piece) for piece in pieces[1::2]]
    for number, piece in enumerate(commands):
        pieces[2 * number + 1] = piece.replace(" ", "\0")
    shown = wrapped("".join(pieces), indent, stream=stream)
    for piece in commands:
        shown = shown.replace(piece.replace(" ", "\0"), click.style(piece, fg="cyan"), 1)
    return shown


def runnable(text: str) -> str:
    """Text of the daemon's own, with its commands as this shell can run them."""
    return _command_pattern().sub(lambda found: _runnable(found[0]), text) if _program() != "rappd" else text


def command(text: str) -> str:
    """A command as this shell can run it: ``rappd …`` or ``.venv/bin/rappd …``."""
    return click.style(_runnable(text), fg="cyan")


def status_mark(verdict: Verdict, stream: IO[str] | None = None) -> str:
    """✓ ! or ✗, in its colour; words where the terminal cannot show them."""
    sign, plain, colour = _MARKS[verdict]
    return click.style(sign if utf8(stream or sys.stdout) else plain, fg=colour)


def arrow(stream: IO[str] | None = None) -> str:
    """→, or -> where the terminal cannot show it."""
    return "→" if utf8(stream or sys.stdout) else "->"


def dim(text: str) -> str:
    """Secondary detail."""
    return click.style(text, dim=True)


def strip_control(text: str) -> str:
    """Foreign text without what would steer the terminal."""
    return _STEERING.sub("", click.unstyle(text))


def wrapped(text: str, indent: int, *, stream: IO[str] | None = None) -> str:
    """``text`` with lines after the first indented; on a terminal, broken at words."""
    stream = stream or sys.stdout
    blank = "\n" + " " * indent
    if not stream.isatty():
        return text.replace("\n", blank)
    room = max(20, terminal_width(stream) - indent)
    lines = (
        textwrap.wrap(line, room, break_long_words=False, break_on_hyphens=False) or [""]
        for line in text.split("\n")
    )
    return blank.join(blank.join(line) for line in lines)


def terminal_width(stream: IO[str] | None = None) -> int:
    """Columns to write in: the terminal's, 80 without one."""
    stream = stream or sys.stdout
    if not stream.isatty():
        return 80
    columns = os.environ.get("COLUMNS", "")
    try:
        return int(columns) if columns.isdecimal() else os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80


def confirmed(question: str) -> bool:
    """The answer of the person at the terminal; no, where they press Enter alone."""
    unbroken = "\N{NO-BREAK SPACE}[y/N]"  # alone on a line it asks nothing
    shown = wrapped(question + unbroken, 0, stream=sys.stderr).replace(unbroken, " [y/N]")
    return click.confirm(shown, default=False, show_default=False, err=True)


def interactive() -> bool:
    """True when there is a person to ask."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def redraws(stream: IO[str]) -> bool:
    """True when a line of the stream may be overwritten."""
    return stream.isatty() and (os.environ.get("TERM") or "dumb") != "dumb"


def colours(stream: IO[str]) -> bool:
    """True when the stream takes colours."""
    return not os.environ.get("NO_COLOR") and redraws(stream)


def plain(text: str, stream: IO[str]) -> str:
    """``text`` with our own signs as that stream can show them; what else it cannot encode is ``?``."""
    if utf8(stream):
        return text
    for sign, word in _PLAIN.items():
        text = text.replace(sign, word)
    encoding = getattr(stream, "encoding", "") or "ascii"
    return text.encode(encoding, "replace").decode(encoding)


def utf8(stream: IO[str]) -> bool:
    """True when ✓ and … can be shown on the stream."""
    return _encodes(stream) and locale_has_utf8(os.environ)


def locale_has_utf8(environment: Mapping[str, str]) -> bool:
    """True when the locale asks for UTF-8. In the C locale Python sets ``LC_CTYPE`` itself, which counts for nothing."""
    chosen = environment.get("LC_ALL") or environment.get("LC_CTYPE") or environment.get("LANG", "")
    if not environment.get("LC_ALL") and chosen in _COERCED:
        chosen = environment.get("LANG") or ""
    return "utf8" in chosen.lower().replace("-", "")


def _encodes(stream: IO[str]) -> bool:
    return (getattr(stream, "encoding", "") or "").lower().replace("-", "") == "utf8"


def _runnable(text: str) -> str:
    return re.sub(r"\brappd(?= |$)", lambda _: _program(), text, count=1)


@functools.cache
def _command_pattern() -> re.Pattern[str]:
    from rappd.cli.commands import COMMANDS

    ending = r"(?:(?!, |; |\. |\.$).)*"
    return re.compile(rf"(?:[A-Z_]+=\S+ )?\brappd (?:{'|'.join(COMMANDS)}|--help)\b{ending}")


@functools.cache
def _program() -> str:
    from agents.programs.programs import known_to_shell  # rarely needed, and every command would pay for it

    found = known_to_shell("rappd")
    here = Path(sys.argv[0]).absolute()
    if here.name != "rappd":
        here = Path(sys.executable).parent / "rappd"
    if found and Path(found).resolve() == here.resolve():
        return "rappd"
    try:
        return str(here.relative_to(Path.cwd()))
    except ValueError:
        return str(here)
