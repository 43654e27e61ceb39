"""Tables that fit the terminal: columns go from the right, no row is ever wrapped."""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import click

from rappd.cli.console import (
    Verdict,
    arrow,
    command,
    dim,
    plain,
    print_out,
    status_mark,
    strip_control,
    terminal_width,
    utf8,
)

_GAP = 2
_LEAST = 12
_ZERO_WIDTH = ("Mn", "Me", "Cf")


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    shrink: int = 0,
    prose: bool = False,
    whole: Sequence[int] = (),
    marks: Sequence[Verdict | None] | None = None,
) -> None:
    """Prints rows under a header, each after its mark where there are ``marks``.

    What does not fit narrows the column ``shrink``, down to 12 columns; then the rightmost columns go.
    A narrowed cell loses its middle, or its end where the column is ``prose``. Columns in ``whole``
    (codes, links, commands) are shown whole or not at all; other long ones keep two fifths of the width.
    """
    lines = [list(header), *[[_one_line(cell) for cell in row] for row in rows]]
    leads = _leads(marks, len(lines))
    natural = [max(cells(fields[column]) for fields in lines) for column in range(len(header))]
    widths = fitted(natural, terminal_width() - cells(leads[0]), shrink=shrink, whole=whole)
    for number, (lead, fields) in enumerate(zip(leads, lines, strict=True)):
        shown = [
            _fit(cell, size, end=prose and column == shrink)
            for column, (cell, size) in enumerate(zip(fields, widths, strict=False))
        ]
        text = (" " * _GAP).join(shown).rstrip()
        print_out(dim(f"{lead}{text}") if number == 0 else f"{lead}{text}".rstrip())


class Table:
    """Columns as data: each a header, with the key of a row or the function that words a row.

    ``mark`` gives a row its mark. Without rows ``none`` is printed: a text, then a command unless that is "".
    ``look`` goes to ``table``.
    """

    def __init__(
        self,
        *columns: tuple[str, str | Callable[[Any], object]],
        mark: Callable[[Any], Verdict | None] | None = None,
        none: tuple[str, str] | None = None,
        **look: Any,
    ) -> None:
        self._columns, self._mark, self._none, self._look = columns, mark, none, look

    def __call__(self, rows: Sequence[Any]) -> None:
        if not rows and self._none is not None:
            text, then = self._none
            print_out(f"{text}{arrow()} {command(then)}" if then else text)
            return
        cells = [
            [str(row[of] if isinstance(of, str) else of(row)) for _, of in self._columns] for row in rows
        ]
        marks = [self._mark(row) for row in rows] if self._mark else None
        table([header for header, _ in self._columns], cells, marks=marks, **self._look)


def fitted(natural: Sequence[int], width: int, *, shrink: int = 0, whole: Sequence[int] = ()) -> list[int]:
    """The widths of the columns that are shown; their sum with the gaps is at most ``width``."""
    most = max(_LEAST, width * 2 // 5)
    wide = [
        size if column == shrink or column in whole else min(size, most)
        for column, size in enumerate(natural)
    ]
    for kept in range(len(wide), 0, -1):
        widths = wide[:kept]
        excess = sum(widths) + _GAP * (kept - 1) - width
        if excess <= 0:
            return widths
        if shrink < kept and widths[shrink] - excess >= min(widths[shrink], _LEAST):
            widths[shrink] -= excess
            return widths
    return [min(wide[0], max(1, width))]


def cells(text: str) -> int:
    """Returns the number of terminal columns that a text takes."""
    bare = click.unstyle(text)
    return len(bare) if bare.isascii() else sum(_cell(sign) for sign in bare)


def middle(text: str, size: int) -> str:
    """``text`` in at most ``size`` columns; a long one loses its middle."""
    if cells(text) <= size:
        return text
    dots = _dots(size)
    right = (size - len(dots)) // 2
    left = size - len(dots) - right
    return f"{_start(text, left)}{dots}{_start(text[::-1], right)[::-1]}"


def beginning(text: str, size: int) -> str:
    """``text`` in at most ``size`` columns; a long one loses its end, at a word where one is near."""
    if cells(text) <= size:
        return text
    dots = _dots(size)
    cut = _start(text, size - len(dots))
    word = cut.rfind(" ")
    return f"{cut[:word] if word > len(cut) * 2 // 3 else cut}".rstrip(" ,;:—-") + dots


def _dots(size: int) -> str:
    return ("…" if utf8(sys.stdout) else "...")[: max(0, size)]


def _start(text: str, size: int) -> str:
    width = 0
    for number, sign in enumerate(text):
        width += _cell(sign)
        if width > size:
            return text[:number]
    return text


def _cell(sign: str) -> int:
    if unicodedata.category(sign) in _ZERO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(sign) in "WF" else 1


def _leads(marks: Sequence[Verdict | None] | None, count: int) -> list[str]:
    if marks is None:
        return [""] * count
    shown = [status_mark(verdict) if verdict else "" for verdict in marks]
    size = max([1, *map(cells, shown)]) + _GAP
    return [text + " " * (size - cells(text)) for text in ["", *shown]]


def _one_line(cell: str) -> str:
    return " ".join(plain(strip_control(cell), sys.stdout).split())


def _fit(cell: str, size: int, *, end: bool) -> str:
    shown = cell if cells(cell) <= size else (beginning if end else middle)(cell, size)
    return shown + " " * (size - cells(shown))
