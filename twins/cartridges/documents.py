"""A JSON cartridge as text: read without a doubt left, written so that people can read and compare it."""

from __future__ import annotations

import json
import math
from typing import Any

import orjson

from twins.errors import BadCartridge

MAX_BYTES = 32 << 20
MAX_DEPTH = 100
_DIGITS = 20  # of the largest number of 64 bits

Document = dict[str, Any]


def parse(octets: bytes, *, name: str = "The cartridge") -> Document:
    """The object in ``octets``. ``name`` is the file's name, for what is said when it is refused.

    UTF-8 (a byte order mark passes, editors add it). Refused with ``BadCartridge``: anything but an
    object, a key twice in one object, NaN and infinities, floats beyond binary64, integers beyond 64
    bits, half characters, more than ``MAX_BYTES`` or ``MAX_DEPTH`` levels.
    """
    if len(octets) > MAX_BYTES:
        raise _damaged(name, f"{len(octets):,} bytes, {MAX_BYTES:,} are allowed")
    try:
        found = json.loads(
            octets.decode("utf-8-sig"),
            object_pairs_hook=_object,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except json.JSONDecodeError as error:
        raise _damaged(name, f"line {error.lineno}: {error.msg}") from error
    except UnicodeDecodeError as error:
        raise _damaged(name, "it is not UTF-8") from error
    except RecursionError as error:
        raise _damaged(name, "it is nested too deep") from error
    except ValueError as error:
        raise _damaged(name, str(error)) from error
    if not isinstance(found, dict):
        raise _damaged(name, "it holds no object")
    if octets.count(b"{") + octets.count(b"[") > MAX_DEPTH and levels(found) > MAX_DEPTH:
        raise _damaged(name, "it is nested too deep")
    if b"\\ud" in octets or b"\\uD" in octets:
        try:
            orjson.dumps(found)
        except orjson.JSONEncodeError as error:
            raise _damaged(name, "it holds half a character") from error
    return found


def written(document: Document) -> bytes:
    """``document`` as a file: indented by two, keys in their order, UTF-8, one newline at the end.

    Raises ``BadCartridge`` for what ``parse`` would not take back.
    """
    octets = b""
    if levels(document) <= MAX_DEPTH:
        try:
            octets = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        except orjson.JSONEncodeError as error:
            raise BadCartridge(f"The cartridge cannot be written ({error}).", do="Leave that out.") from error
    if not 0 < len(octets) <= MAX_BYTES:
        raise BadCartridge(
            f"The cartridge is too large: {MAX_BYTES:,} bytes and {MAX_DEPTH} levels are allowed.",
            do="Let it forget something.",
        )
    return octets


def canonical(value: Any) -> bytes:
    """``value`` as one line: keys sorted, no spaces, non-ASCII kept. What hashes are made of."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    ).encode()


def same(a: Any, b: Any) -> bool:
    """Whether two JSON values are equal as JSON: 1, 1.0 and true are three different things."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def levels(value: Any) -> int:
    """How many objects and lists lie inside each other, the outermost counted."""
    deepest = 0
    waiting = [(value, 1)]
    while waiting:
        one, level = waiting.pop()
        if isinstance(one, dict | list):
            deepest = max(deepest, level)
            inside = one.values() if isinstance(one, dict) else one
            waiting.extend((part, level + 1) for part in inside)
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> Document:
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
    if len(text) <= _DIGITS:
        found = int(text)
        if -(1 << 63) <= found < 1 << 64:
            return found
    raise ValueError("it holds a number of more than 64 bits")


def _float(text: str) -> float:
    found = float(text)
    if math.isinf(found):
        raise ValueError("it holds a number that is too large")
    return found


def _constant(text: str) -> float:
    raise ValueError(f"{text} is not JSON")


def _damaged(name: str, why: str) -> BadCartridge:
    return BadCartridge(f"{name} is damaged ({why}); nothing was loaded.", do="Get it again, or mend it.")
