"""Strings and symbols. Places and lengths count characters."""

from __future__ import annotations

from typing import Any

from agents.runtimes.lispy.builtins.lists import append, items_of
from agents.runtimes.lispy.errors import passed, wrong
from agents.runtimes.lispy.machine_state import State
from agents.runtimes.lispy.number_format import number_in
from agents.runtimes.lispy.printer import TextTooLongError, displayed, shortly
from agents.runtimes.lispy.values import ANY, Pair, Symbol

SPACES = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006"
    "\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""Characters that count as blank: those that ``str.isspace`` knows, listed because other runtimes differ."""


def text_of(state: State, name: str, value: Any) -> str:
    """``value``, if it is a string."""
    if type(value) is not str:
        raise wrong(f"{name}: not a string: {shortly(value)}")
    return state.reading(value)


def as_text(state: State, value: Any) -> str:
    """Any value as a person reads it; the characters of what is no string are charged for."""
    limit = state.limits.max_collection_items
    try:
        return state.reading(displayed(value, limit))
    except TextTooLongError:
        raise passed("collection_items", limit, limit + 1) from None


def _joined(state: State, pieces: list[str], between: str = "") -> str:
    state.fits(sum(map(len, pieces)) + len(between) * max(0, len(pieces) - 1))
    return state.made_text(between.join(pieces))


def _string_append(state: State, arguments: list[Any]) -> Any:
    return _joined(state, [text_of(state, "string-append", argument) for argument in arguments])


def _concat(state: State, arguments: list[Any]) -> Any:
    """Lists as one list; with anything else among them, all of them as one text."""
    if arguments and all(value is None or type(value) in (list, Pair) for value in arguments):
        return append(state, arguments)
    return _joined(state, [as_text(state, argument) for argument in arguments])


def _to_string(state: State, arguments: list[Any]) -> Any:
    return state.made_text(as_text(state, arguments[0]))


def _number_to_string(state: State, arguments: list[Any]) -> Any:
    if type(arguments[0]) not in (int, float):
        raise wrong(f"number->string: not a number: {shortly(arguments[0])}")
    return state.made_text(as_text(state, arguments[0]))


def number_from(state: State, text: str) -> int | float | None:
    """The number that ``text`` is, blanks around it aside, or None."""
    limit = state.limits.max_integer_bits
    try:
        return number_in(text.strip(SPACES), limit)
    except OverflowError:
        raise passed("integer_bits", limit, limit + 1) from None


def _string_to_number(state: State, arguments: list[Any]) -> Any:
    """The number written in a string; nil if none is."""
    return number_from(state, text_of(state, "string->number", arguments[0]))


def _to_number(state: State, arguments: list[Any]) -> Any:
    """A number as it is, or the one written in a string; nil if none is."""
    value = arguments[0]
    return value if type(value) in (int, float) else number_from(state, text_of(state, "->number", value))


def _length(state: State, arguments: list[Any]) -> Any:
    return len(text_of(state, "string-length", arguments[0]))


def _place(name: str, value: Any) -> int:
    if type(value) is not int:
        raise wrong(f"{name}: not a place: {shortly(value)}")
    return value


def _ref(state: State, arguments: list[Any]) -> Any:
    text, place = text_of(state, "string-ref", arguments[0]), _place("string-ref", arguments[1])
    if not 0 <= place < len(text):
        raise wrong(f"string-ref: there is no character {shortly(place)}")
    return text[place]


def _substring(state: State, arguments: list[Any]) -> Any:
    """``(substring text start end)``; to the end of the text without ``end``."""
    text, start = text_of(state, "substring", arguments[0]), _place("substring", arguments[1])
    end = _place("substring", arguments[2]) if len(arguments) == 3 else len(text)
    if not 0 <= start <= end <= len(text):
        raise wrong(f"substring: {shortly(start)} to {shortly(end)} is not within {len(text)} characters")
    return state.made_text(text[start:end])


def _upcase(state: State, arguments: list[Any]) -> Any:
    return state.made_text(text_of(state, "string-upcase", arguments[0]).upper())


def _downcase(state: State, arguments: list[Any]) -> Any:
    return state.made_text(text_of(state, "string-downcase", arguments[0]).lower())


def _trim(state: State, arguments: list[Any]) -> Any:
    return state.made_text(text_of(state, "string-trim", arguments[0]).strip(SPACES))


def _contains(state: State, arguments: list[Any]) -> Any:
    text, part = (text_of(state, "string-contains?", argument) for argument in arguments)
    return part in text


def _replace(state: State, arguments: list[Any]) -> Any:
    """``(string-replace text old new)``: every ``old`` replaced."""
    text, old, new = (text_of(state, "string-replace", argument) for argument in arguments)
    if not old:
        raise wrong("string-replace: there is nothing to look for")
    state.fits(len(text) + text.count(old) * (len(new) - len(old)))
    return state.made_text(text.replace(old, new))


def _split(state: State, arguments: list[Any]) -> Any:
    """``(string-split text separator)``; at blanks, none of them kept, without one; a step for each piece."""
    text = text_of(state, "string-split", arguments[0])
    if len(arguments) == 1:
        pieces = text.split()
    else:
        separator = text_of(state, "string-split", arguments[1])
        if not separator:
            raise wrong("string-split: the separator is empty")
        pieces = text.split(separator)
    state.charge(len(pieces))
    state.cells += len(text) >> 5
    return state.made(pieces)


def _join(state: State, arguments: list[Any]) -> Any:
    """``(string-join list separator)``, the two in either order; nothing between without one."""
    items, between = arguments if len(arguments) == 2 else (arguments[0], "")
    if type(items) is str:
        items, between = between, items
    pieces = items_of(state, "string-join", items)
    state.work(len(pieces))
    between = text_of(state, "string-join", between)
    return _joined(state, [text_of(state, "string-join", piece) for piece in pieces], between)


def _symbol_to_string(state: State, arguments: list[Any]) -> Any:
    if type(arguments[0]) is not Symbol:
        raise wrong(f"symbol->string: not a symbol: {shortly(arguments[0])}")
    return state.made_text(str(arguments[0]))


def _string_to_symbol(state: State, arguments: list[Any]) -> Any:
    return Symbol(state.made_text(text_of(state, "string->symbol", arguments[0])))


BUILTINS = {
    "string-append": (_string_append, 0, ANY),
    "concat": (_concat, 0, ANY),
    "->string": (_to_string, 1, 1),
    "string": (_to_string, 1, 1),
    "number->string": (_number_to_string, 1, 1),
    "->number": (_to_number, 1, 1),
    "number": (_to_number, 1, 1),
    "string->number": (_string_to_number, 1, 1),
    "string-length": (_length, 1, 1),
    "string-ref": (_ref, 2, 2),
    "substring": (_substring, 2, 3),
    "string-upcase": (_upcase, 1, 1),
    "string-downcase": (_downcase, 1, 1),
    "string-trim": (_trim, 1, 1),
    "string-contains?": (_contains, 2, 2),
    "string-replace": (_replace, 3, 3),
    "string-split": (_split, 1, 2),
    "string-join": (_join, 1, 2),
    "symbol->string": (_symbol_to_string, 1, 1),
    "string->symbol": (_string_to_symbol, 1, 1),
}
