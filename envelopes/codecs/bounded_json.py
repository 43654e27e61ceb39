"""JSON of another machine, bounded before it is parsed: a parser written in C holds the whole process meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import orjson

from envelopes.codecs.strict_json import MAX_DEPTH, deeper_than, outside_strings

MOST_BYTES = 1 << 20
"""A mebibyte of the worst text, of short keys, takes 35 ms (CPython 3.11, 2 GHz)."""
MOST_CONTAINERS = 50_000
"""Lists and objects. Each costs 0.3 µs, and what the garbage collector takes for a look at it: 350,000 empty
lists are one mebibyte and take 250 ms."""
MOST_VALUES = 100_000
"""Of what has more than ``MOST_BYTES``: such text is long, and of few parts."""

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_LONGEST_STRING = 1 << 20  # the search for its end holds the process, too
# Inside of a part its own commas are skipped by the search, which is written in C.
_BETWEEN_PARTS = re.compile(rb'[^"\[\]{},]*+(?:' + _STRING + rb"|[\[\]{},])", re.DOTALL).match
_INSIDE = re.compile(rb'[^"\[\]{}]*+(?:' + _STRING + rb"|[\[\]{}])", re.DOTALL).match
_BLANK = b" \t\r\n"


def bounded_json(octets: bytes, *, most_bytes: int = MOST_BYTES) -> Any:
    """The value that ``octets`` hold.

    Raises ``ValueError``, with a clause, for no JSON and for too many bytes, lists and objects, or more than
    ``MAX_DEPTH`` levels. Nothing else is raised.
    """
    if len(octets) > most_bytes:
        raise ValueError(f"it has more than {most_bytes} bytes")
    if holds_too_many(octets):
        raise ValueError(f"it holds more than {MOST_CONTAINERS} lists and objects")
    if len(octets) > MOST_BYTES and _values(octets) > MOST_VALUES:
        raise ValueError(f"it holds more than {MOST_VALUES} values")
    if deeper_than(octets, MAX_DEPTH):
        raise ValueError("it is nested too deep")
    return orjson.loads(octets)


def bounded_object(octets: bytes, *, most_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """The object that ``octets`` hold, under the bounds of ``bounded_json``; an empty one where they hold none."""
    try:
        found = bounded_json(octets, most_bytes=most_bytes)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def holds_too_many(octets: bytes, most: int = MOST_CONTAINERS) -> bool:
    """True when JSON text has more than ``most`` lists and objects. Nothing is built from it."""
    if len(octets) <= 2 * most or (found := _brackets(octets)) <= most:
        return False
    # To take the texts out costs 40 ms where there are many; no text is of brackets for a fifth.
    return found > 4 * most or _brackets(outside_strings(octets)) > most


def _values(octets: bytes) -> int:
    """The number of values that JSON text may have, or of its texts, whichever is more."""
    found = _brackets(octets) + octets.count(b",")
    if found > MOST_VALUES:
        quotes = octets.count(b'"') - octets.count(b'\\"')
        if quotes > 4 * MOST_VALUES:  # to take so many texts out would hold the process, too
            return quotes
        plain = outside_strings(octets)
        found = _brackets(plain) + plain.count(b",")
    return found


def _brackets(octets: bytes) -> int:
    return octets.count(b"[") + octets.count(b"{")


def list_parts(octets: bytes, *, longest_text: int = _LONGEST_STRING) -> Iterator[bytes]:
    """The JSON texts of a list's values, one after the other; none of them is parsed. Raises ``ValueError``.

    A list is JSON when each part is. It takes a thread, and lets others run between the parts.
    """
    return (octets[start:end] for start, end in _parts(octets, b"[", b"]", longest_text))


def object_parts(octets: bytes) -> Iterator[tuple[str, bytes]]:
    """The (key, JSON text of the value) pairs of an object, as ``list_parts`` gives those of a list."""
    for start, end in _parts(octets, b"{", b"}", _LONGEST_STRING):
        found = _KEY(octets, start, min(end, start + _LONGEST_STRING))
        if found is None:
            raise ValueError("a key of it has no value")
        yield orjson.loads(found[1]), octets[found.end() : end]


_BEGIN = re.compile(rb"[ \t\r\n]*+([\[{])").match
_KEY = re.compile(rb"[ \t\r\n]*+(" + _STRING + rb")[ \t\r\n]*+:", re.DOTALL).match
_QUOTE, _COMMA, _LIST, _OBJECT = b'",[{'


def _parts(octets: bytes, opening: bytes, closing: bytes, longest_text: int) -> Iterator[tuple[int, int]]:
    begin = _BEGIN(octets)
    if begin is None or begin[1] != opening:
        raise ValueError("it is of another kind")
    start = at = begin.end()
    depth, has_any = 1, False
    while True:
        search = _BETWEEN_PARTS if depth == 1 else _INSIDE
        found = search(octets, at, at + longest_text)
        if found is None:
            raise ValueError("it is cut off, or holds too long a text")
        at = found.end()
        sign = octets[at - 1]
        if sign == _QUOTE:
            continue
        if sign in (_LIST, _OBJECT):
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError("it is nested too deep")
        elif sign == _COMMA:
            yield start, at - 1
            start, has_any = at, True
        else:
            depth -= 1
            if not depth:
                break
    if octets[at - 1 : at] != closing or octets[at:].strip(_BLANK):
        raise ValueError("something else follows")
    if has_any or octets[start : at - 1].strip(_BLANK):
        yield start, at - 1
