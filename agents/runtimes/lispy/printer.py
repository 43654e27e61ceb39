"""Values as text: as a program would write them, or as a person reads them."""

from __future__ import annotations

from typing import Any

from agents.runtimes.lispy.number_format import decimal, written
from agents.runtimes.lispy.values import Builtin, Closure, Combined, Macro, Pair, Symbol

_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"})


class TextTooLongError(Exception):
    """The text would have more characters than it may."""


class Words(str):
    """Text on the printer's stack that stands for itself, between values that are still to be printed."""

    __slots__ = ()


_SPACE, _CLOSE, _DOT, _OPEN_ENTRY = Words(" "), Words(")"), Words(" . "), Words(" (")


def printed(value: Any, most: int) -> str:
    """As a program writes it, strings in quotes. Raises ``ResponseTooLongError`` beyond ``most`` characters.

    The work is bounded by ``most`` too, however often a value shares its parts.
    """
    pieces: list[str] = []
    room = most
    waiting = [value]
    while waiting:
        value = waiting.pop()
        kind = type(value)
        if kind is list:
            piece = "("
            if len(value) > room:  # each item takes a character at least
                raise TextTooLongError
            waiting.append(_CLOSE)
            for index in range(len(value) - 1, -1, -1):
                waiting.append(value[index])
                if index:
                    waiting.append(_SPACE)
        elif kind is Pair:
            piece = "("
            waiting += (_CLOSE, value.cdr, _DOT, value.car)
        elif kind is dict:
            piece = "(dict"
            if len(value) > room:
                raise TextTooLongError
            waiting.append(_CLOSE)
            for key, item in reversed(value.items()):
                waiting += (_CLOSE, item, _DOT, key, _OPEN_ENTRY)
        else:
            piece = str(value) if kind is Words else atom(value)
        room -= len(piece)
        if room < 0:
            raise TextTooLongError
        pieces.append(piece)
    return "".join(pieces)


def displayed(value: Any, most: int) -> str:
    """As a person reads it: a string as it is, everything else as ``printed``."""
    if type(value) is str:
        if len(value) > most:
            raise TextTooLongError
        return value
    return printed(value, most)


def shortly(value: Any, most: int = 80) -> str:
    """``printed`` for a message: what does not fit is cut, and ends in ``…``."""
    if type(value) is str and len(value) > most:
        value = value[:most]
        return printed(value, 2 * most + 2) + "…"
    try:
        return printed(value, most)
    except TextTooLongError:
        return f"a {_word(value)} too long to show"


def atom(value: Any) -> str:
    """Anything but a list, a pair or a map, as a program writes it."""
    kind = type(value)
    if kind is Symbol:
        return str(value)
    if kind is str:
        escaped: str = value.translate(_ESCAPES)
        return f'"{escaped}"'
    if kind is int:
        return decimal(value)
    if kind is float:
        return written(value)
    if value is None:
        return "()"
    if kind is bool:
        return "#t" if value else "#f"
    if kind is Builtin:
        return f"#<builtin {value.name}>"
    if kind is Macro:
        return f"#<macro {value.name}>" if value.name else "#<macro>"
    if kind is Closure:
        return f"#<procedure {value.name}>" if value.name else "#<procedure>"
    if kind is Combined:
        return f"#<procedure {value.kind}>"
    raise TypeError(f"not a value of the language: {kind.__name__}")


def _word(value: Any) -> str:
    kind = type(value)
    return {list: "list", Pair: "pair", dict: "map", int: "number"}.get(kind, "value")
