"""Facts about JSON text without building it: its depth, and repeated keys."""

from __future__ import annotations

import json
import re
from typing import Any

import orjson

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
