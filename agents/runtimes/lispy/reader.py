"""Program text as forms."""

from __future__ import annotations

import re
from typing import Any

from agents.runtimes.lispy.errors import LispyError, passed
from agents.runtimes.lispy.limits import Limits
from agents.runtimes.lispy.number_format import number_in
from agents.runtimes.lispy.values import Symbol

_PIECES = re.compile(
    r"""[ \t\n\r\f\v]+|;[^\n]*|[()\[\]]"""
    r"""|"[^"\\]*(?:\\.[^"\\]*)*"|"|'|`|,@|,"""
    r"""|[^ \t\n\r\f\v()\[\]"'`,;]+""",
    re.DOTALL,
)
_BLANK = " \t\n\r\f\v;"
_CLOSING = {"(": ")", "[": "]"}
_PREFIXES = {"'": "quote", "`": "quasiquote", ",": "unquote", ",@": "unquote-splicing"}
_ESCAPE = re.compile(r'\\([nt"\\])')
_ESCAPED = {"n": "\n", "t": "\t", '"': '"', "\\": "\\"}
_ATOMS: dict[str, Any] = {"#t": True, "#f": False, "nil": None}


def read(source: str, limits: Limits, *, named: str = "<vm>") -> list[Any]:
    """Every form in ``source``. Raises ``LispyError``: syntax, resource-limit, invalid-data.

    ``named`` stands before line and column in what it says.
    """
    try:
        size = len(source.encode())
    except UnicodeEncodeError:
        raise LispyError("invalid-data", "the source is not text: it holds half a character") from None
    if size > limits.max_source_bytes:
        raise passed("source_bytes", limits.max_source_bytes, size)
    return _Reading(source, limits, named).forms()


class _Reading:
    """One pass over the text. What is open is a stack of our own, so that depth costs no recursion."""

    def __init__(self, source: str, limits: Limits, named: str) -> None:
        self._source = source
        self._limits = limits
        self._named = named
        self._symbols: dict[str, Symbol] = {}

    def forms(self) -> list[Any]:
        forms: list[Any] = []
        into = forms
        outer: list[tuple[list[Any], str, int]] = []  # (where it goes, its opening or prefix, place)
        for match in _PIECES.finditer(self._source):
            piece, place = match.group(), match.start()
            if piece[0] in _BLANK:
                continue
            if piece in _CLOSING:
                outer.append((into, piece, place))
                into = []
                self._check_depth(len(outer))
                continue
            if piece in _PREFIXES:
                outer.append((into, piece, place))
                into = [self._symbol(_PREFIXES[piece])]
                self._check_depth(len(outer))
                continue
            if piece in ")]":
                if not outer or _CLOSING.get(outer[-1][1]) != piece:
                    raise self._malformed(place, f"unexpected closing delimiter '{piece}'")
                finished: Any = into
                into = outer.pop()[0]
            elif piece[0] == '"':
                finished = self._string(piece, place)
            else:
                finished = self._atom(piece)
            into.append(finished)
            while outer and outer[-1][1] in _PREFIXES:
                quoted = into
                into = outer.pop()[0]
                into.append(quoted)
        if outer:
            _, opening, place = outer[-1]
            what = "unclosed delimiter" if opening in _CLOSING else "nothing follows"
            raise self._malformed(place, f"{what} '{opening}'")
        return forms

    def _atom(self, piece: str) -> Any:
        if piece in _ATOMS:
            return _ATOMS[piece]
        if piece[0] in "+-.0123456789":
            try:
                number = number_in(piece, self._limits.max_integer_bits)
            except OverflowError:
                raise passed(
                    "integer_bits", self._limits.max_integer_bits, self._limits.max_integer_bits + 1
                ) from None
            if number is not None:
                return number
        return self._symbol(piece)

    def _symbol(self, name: str) -> Symbol:
        found = self._symbols.get(name)
        if found is None:
            found = self._symbols[name] = Symbol(name)
        return found

    def _string(self, piece: str, place: int) -> str:
        if len(piece) < 2:
            raise self._malformed(place, "unterminated string")
        return _ESCAPE.sub(lambda found: _ESCAPED[found.group(1)], piece[1:-1])

    def _check_depth(self, depth: int) -> None:
        if depth > self._limits.max_reader_depth:
            raise passed("reader_depth", self._limits.max_reader_depth, depth)

    def _malformed(self, place: int, what: str) -> LispyError:
        line = self._source.count("\n", 0, place) + 1
        column = place - self._source.rfind("\n", 0, place)
        return LispyError("syntax", f"{self._named}:{line}:{column}: {what}", line=line)
