"""JSON text as values and back. A null is nil, an array a list, an object a map."""

from __future__ import annotations

import re
from typing import Any, NoReturn

from agents.runtimes.lispy.builtins.strings import text_of
from agents.runtimes.lispy.errors import LispyError, passed
from agents.runtimes.lispy.machine_state import State
from agents.runtimes.lispy.number_format import decimal, number_in, written
from agents.runtimes.lispy.printer import Words
from agents.runtimes.lispy.values import Symbol, kind_of

_PIECES = re.compile(
    r'[ \t\n\r]+|[\[\]{},:]|"[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*"'
    r"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null"
)
_BLANK = " \t\n\r"
_CONSTANTS: dict[str, Any] = {"true": True, "false": False, "null": None}
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))")
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_TO_ESCAPE = re.compile(r'["\\\x00-\x1f]')


def _parse(state: State, arguments: list[Any]) -> Any:
    """The value that a JSON text stands for."""
    text = text_of(state, "json-parse", arguments[0])
    value, pieces = _Parsing(state, text).value()
    state.work(pieces)
    return value


class _Parsing:
    """One pass over a JSON text, with a stack of its own for what is open."""

    def __init__(self, state: State, text: str) -> None:
        self._state = state
        self._text = text
        self._open: list[Any] = []
        self._keys: list[str] = []

    def value(self) -> tuple[Any, int]:
        """The value, and how many pieces the text has."""
        place = count = 0
        want = "value"
        value: Any = None
        while place < len(self._text):
            match = _PIECES.match(self._text, place)
            if match is None:
                self._bad(place)
            piece = match.group()
            if piece[0] in _BLANK:
                place = match.end()
                continue
            count += 1
            if want == ":":
                if piece != ":":
                    self._bad(place)
                want = "value"
            elif piece[0] == '"' and want in ("key", "key or }"):
                self._keys.append(self._string(piece, place))
                want = ":"
            elif piece == "," and want == "," and self._open:
                want = "value" if type(self._open[-1]) is list else "key"
            elif piece in ("[", "{") and want in ("value", "value or ]"):
                self._open.append([] if piece == "[" else {})
                want = "value or ]" if piece == "[" else "key or }"
                limit = self._state.limits.max_reader_depth
                if len(self._open) > limit:
                    raise passed("reader_depth", limit, len(self._open))
            else:
                if piece in ("]", "}"):
                    value = self._closed(piece, want, place)
                elif want in ("value", "value or ]"):
                    value = self._atom(piece, place)
                else:
                    self._bad(place)
                want = ","
                if self._open:
                    self._put(value)
            place = match.end()
        if self._open or want != ",":
            self._bad(place)
        return value, count

    def _closed(self, piece: str, want: str, place: int) -> Any:
        kind = list if piece == "]" else dict
        if not self._open or type(self._open[-1]) is not kind or not (want == "," or want.endswith(piece)):
            self._bad(place)
        value = self._open.pop()
        return self._state.made(value) if kind is list else self._state.made_map(value)

    def _put(self, value: Any) -> None:
        if type(self._open[-1]) is list:
            self._open[-1].append(value)
        else:
            self._open[-1][self._keys.pop()] = value

    def _atom(self, piece: str, place: int) -> Any:
        if piece in _CONSTANTS:
            return _CONSTANTS[piece]
        if piece[0] == '"':
            return self._string(piece, place)
        limit = self._state.limits.max_integer_bits
        try:
            number = number_in(piece, limit)
        except OverflowError:
            raise passed("integer_bits", limit, limit + 1) from None
        if number is None:
            self._bad(place)
        return number

    def _string(self, piece: str, place: int) -> str:
        text = piece[1:-1]
        if "\\" in text:
            text = _ESCAPE.sub(_unescaped, text)
            try:  # two escaped halves of a character become one
                text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
            except UnicodeDecodeError:
                self._bad(place)
        return self._state.made_text(text)

    def _bad(self, place: int) -> NoReturn:
        raise LispyError("invalid-data", f"json-parse: not JSON at character {place + 1}")


def _unescaped(match: re.Match[str]) -> str:
    if match.group(1):
        return chr(int(match.group(1), 16))
    return _ESCAPED.get(match.group(2), match.group(2))


def _dump(state: State, arguments: list[Any]) -> Any:
    """Compact JSON text of nil, booleans, numbers, strings, symbols (as strings), lists and maps."""
    limit = room = state.limits.max_collection_items
    pieces: list[str] = []
    waiting = [arguments[0]]
    while waiting:
        value = waiting.pop()
        if type(value) is list and len(value) < room:
            piece = "["
            waiting.append(Words("]"))
            for index in range(len(value) - 1, -1, -1):
                waiting.append(value[index])
                if index:
                    waiting.append(Words(","))
        elif type(value) is dict and len(value) < room:
            piece = "{"
            waiting.append(Words("}"))
            for number, (key, item) in zip(
                range(len(value) - 1, -1, -1), reversed(value.items()), strict=True
            ):
                waiting += (item, Words(":"), key)
                if number:
                    waiting.append(Words(","))
        elif type(value) in (list, dict):
            raise passed("collection_items", limit, limit + 1)
        else:
            piece = _written_atom(value)
        room -= len(piece)
        if room < 0:
            raise passed("collection_items", limit, limit + 1)
        pieces.append(piece)
    return state.made_text(state.reading("".join(pieces)))


def _written_atom(value: Any) -> str:
    kind = type(value)
    if kind is Words:
        return str(value)
    if kind is str or kind is Symbol:
        return '"' + _TO_ESCAPE.sub(_escaped, value) + '"'
    if kind is int:
        return decimal(value)
    if kind is float:
        return written(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    raise LispyError("serialization", f"json-dump: {kind_of(value)} has no form in JSON")


def _escaped(match: re.Match[str]) -> str:
    letter = match.group()
    return _ESCAPES.get(letter) or f"\\u{ord(letter):04x}"


BUILTINS = {
    "json-parse": (_parse, 1, 1),
    "json->sexp": (_parse, 1, 1),
    "json-dump": (_dump, 1, 1),
    "sexp->json": (_dump, 1, 1),
}
