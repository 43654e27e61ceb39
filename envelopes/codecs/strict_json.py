"""JSON from elsewhere, read so that no two readers can understand it differently."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

import orjson

MAX_DEPTH = 100
"""Levels of objects and lists, the outermost being 1."""
MAX_RECORDED_DEPTH = 48
"""Levels of an argument or result: an event holds 64, and they are a few levels down in it."""
_FEW, _SPARSE = 50_000, 32  # lists and objects that are always taken; bytes of each, beyond that
_DIGITS = 20  # of the largest number of 64 bits


def strict_object(octets: bytes, *, wide: bool = False) -> dict[str, Any]:
    """The one object that ``octets`` (UTF-8; a byte order mark passes, editors add it) hold.

    Raises ``ValueError`` with a clause that says why not, for anything else: a key twice in one object,
    NaN and infinities, floats beyond binary64, integers beyond 64 bits (72 with ``wide``), half
    characters, more than ``MAX_DEPTH`` levels, lists and objects by the hundred thousand.
    """
    # The garbage collector looks through lists that are made by the hundred thousand again and again.
    most = max(_FEW, len(octets) // _SPARSE)
    if _brackets(octets) > most and _brackets(outside_strings(octets)) > most:
        raise ValueError("it holds too many lists and objects")
    try:
        found = json.loads(
            octets.decode("utf-8-sig"),
            object_pairs_hook=_object,
            parse_float=_float,
            parse_int=_wide if wide else _integer,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"line {error.lineno}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise ValueError("it is not UTF-8") from error
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    if not isinstance(found, dict):
        raise ValueError("it holds no object")
    halves = b"\\ud" in octets or b"\\uD" in octets
    if halves or octets.count(b"{") + octets.count(b"[") > MAX_DEPTH:
        for depth, level in enumerate(levels(found), 1):
            if depth > MAX_DEPTH:
                raise ValueError("it is nested too deep")
            if halves and not all(map(_is_whole, _texts(level))):
                raise ValueError("it holds half a character")
    return found


def _brackets(octets: bytes) -> int:
    return octets.count(b"[") + octets.count(b"{")


def levels(value: Any) -> Iterator[list[Any]]:
    """The objects and lists of each level, outermost first. There are as many levels as it is deep."""
    level = [value]
    while level:
        yield level
        inside = chain.from_iterable(one.values() if isinstance(one, dict) else one for one in level)
        level = [part for part in inside if isinstance(part, (dict, list))]


def _texts(level: list[Any]) -> Iterator[str]:
    for one in level:
        if isinstance(one, dict):
            yield from one
        yield from (
            part for part in (one.values() if isinstance(one, dict) else one) if isinstance(part, str)
        )


def _is_whole(text: str) -> bool:
    return text.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in text)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                shown = key[:60].encode("unicode_escape").decode()
                raise ValueError(f'it has the key "{shown}" twice in one object')
            seen.add(key)
    return found


def _integer(text: str) -> int:
    return _within(text, 64)


def _wide(text: str) -> int:
    return _within(text, 72)


def _within(text: str, bits: int) -> int:
    if len(text) <= _DIGITS + 4:
        found = int(text)
        if -(1 << 63) <= found < 1 << bits:
            return found
    raise ValueError("it holds a number of more than 64 bits")


def _float(text: str) -> float:
    found = float(text)
    if math.isinf(found) or len(text) > 400:
        raise ValueError("it holds a number that is too large")
    return found


def _constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


_ROUND = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_RUNS = re.compile(rb"(\[*)(\]*)").findall


def deeper_than(octets: bytes, limit: int) -> bool:
    """True when JSON text has more than ``limit`` levels of objects and lists, the outermost being 1.

    Never true for JSON that is within the limit; for other text the result may be either. A byte of
    hostile text costs nanoseconds, and nothing is built from it.
    """
    if octets.count(b"{") + octets.count(b"[") <= limit:
        return False
    brackets = outside_strings(octets).translate(_ROUND, _NO_BRACKETS)
    below = 0
    while brackets:
        shorter = brackets.replace(b"[]", b"")  # takes the innermost level of every branch away
        if 4 * len(shorter) > 3 * len(brackets):
            return _highest(brackets) + below > limit  # few branches, long runs: counting them is quicker
        brackets = shorter
        below += 1
    return below > limit


def outside_strings(octets: bytes) -> bytes:
    """Returns JSON text without its strings."""
    if b"\\" in octets:
        octets = octets.replace(b"\\\\", b"").replace(b'\\"', b"")
    return b"".join(octets.split(b'"')[::2])


def says_a_key_twice(octets: bytes, found: Any) -> bool:
    """True when an object of the text has a key more than once; ``found`` is the parsed text.

    Each key has one colon, and of a key's repeats the reader keeps one: so text that lost nothing has
    as many colons as what is written from it anew. ``found`` may have at most 254 levels.
    """
    again = orjson.dumps(found)
    if b"\\u003" in octets:  # "\u003a" is a colon that only one of the two shows
        return outside_strings(octets).count(b":") != outside_strings(again).count(b":")
    return octets.count(b":") != again.count(b":")


def repeated_key(octets: bytes) -> str:
    """The first key that comes twice in one object, "" when none does. Slow; for saying what was wrong."""
    try:
        json.loads(octets, object_pairs_hook=_once, parse_int=float)
    except _RepeatedKeyError as repeated:
        return str(repeated)
    return ""


def _highest(brackets: bytes) -> int:
    level = highest = 0
    for opening, closing in _RUNS(brackets):
        level += len(opening)
        highest = max(highest, level)
        level -= len(closing)
    return highest


class _RepeatedKeyError(Exception):
    pass


def _once(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise _RepeatedKeyError(key)
        seen.add(key)


def too_deep(value: object, limit: int = MAX_RECORDED_DEPTH) -> bool:
    """True when lists and objects lie in each other more than ``limit`` deep."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def not_utf8(raw: bytes) -> str:
    """The sentence for words in another encoding, with the first byte that tells it, counted from 1; "" for UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return f"These words are not text in UTF-8 (byte {error.start + 1})"
    return ""
