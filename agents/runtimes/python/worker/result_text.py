"""The text of what an agent's perform returned: JSON for data, the pieces of a generator joined."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import AsyncGenerator, Callable, Generator
from types import ModuleType
from typing import Any

MOST_CHARACTERS = 60 << 20
"""Of all pieces of a generator: it ends there, before the answer is too large for its frame."""

MOST_FOLLOWED = 1 << 20
"""Characters that are shown while it still runs."""

MOST_COMPLAINT = 64 << 10
"""Characters of a result that may be a complaint."""

_ADDRESS = re.compile(r"<.+ at 0x[0-9a-fA-F]+>+", re.DOTALL)
"""The text that Python writes for a value without one of its own."""

OnPiece = Callable[[str], None]


class NoTextError(TypeError):
    """A result that says nothing to anybody; ``perform_line`` is the line of the agent's perform."""

    perform_line = 0


def as_text(value: Any) -> str:
    """The return value of perform as text for a model: JSON for dicts and lists, "" for None.

    The text can always be encoded as UTF-8; numbers that JSON has not are null. Raises ``NoTextError`` for a
    function, a class and whatever else has no text of its own.
    """
    if value is None:
        return ""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if type(value) is str and value[:1] != "<":
        text = value
    elif isinstance(value, (dict, list, tuple)):
        text = _json(value)
    elif isinstance(value, float) and not math.isfinite(value):
        text = "null"
    else:
        text = _own_text(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def complaint_in(text: str) -> str:
    """The complaint of an agent that returned ``{"status": "error", …}``; "" for every other result."""
    if not text.startswith("{") or '"error"' not in text[:MOST_COMPLAINT]:
        return ""
    try:
        found = json.loads(text[:MOST_COMPLAINT])
    except (ValueError, RecursionError):
        return ""
    if not isinstance(found, dict) or found.get("status") != "error":
        return ""
    return str(found.get("message") or found.get("error") or "it failed")


def is_generator(value: Any) -> bool:
    """True for a generator, plain or async."""
    return isinstance(value, (Generator, AsyncGenerator))


def joined(pieces: Generator[Any, Any, Any], on_piece: OnPiece | None) -> Any:
    """Runs a generator to its end; ``on_piece`` is told each text as it comes.

    Returns the joined text, or what the generator itself returned where it yielded nothing. A piece that is no
    text stands on a line of its own.
    """
    parts: list[str] = []
    length = 0
    try:
        while True:
            length = _take(next(pieces), parts, length, on_piece)
    except StopIteration as end:
        return "".join(parts) if parts else end.value
    finally:
        pieces.close()


async def joined_async(pieces: AsyncGenerator[Any, Any], on_piece: OnPiece | None) -> str:
    """The same for an async generator."""
    parts: list[str] = []
    length = 0
    try:
        async for piece in pieces:
            length = _take(piece, parts, length, on_piece)
    finally:
        await pieces.aclose()
    return "".join(parts)


def _take(piece: Any, parts: list[str], length: int, on_piece: OnPiece | None) -> int:
    text = as_text(piece) if isinstance(piece, (str, bytes, bytearray)) else f"{as_text(piece)}\n"
    length += len(text)
    if length > MOST_CHARACTERS:
        raise ValueError(f"it yielded more than {MOST_CHARACTERS >> 20} million characters")
    parts.append(text)
    if on_piece is not None and text:
        on_piece(text)
    return length


def _json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, default=_in_json, allow_nan=False)
    except (TypeError, ValueError):  # keys or numbers that JSON has not, or a circle
        pass
    try:
        return json.dumps(_plain(value, ()), ensure_ascii=False, allow_nan=False)
    except _CircleError:
        return str(value)


class _CircleError(Exception):
    """A value that holds itself."""


def _plain(value: Any, inside: tuple[int, ...]) -> Any:
    if isinstance(value, (dict, list, tuple)):
        if id(value) in inside:
            raise _CircleError
        inside = (*inside, id(value))
        if isinstance(value, dict):
            return {_key(key): _plain(inner, inside) for key, inner in value.items()}
        return [_plain(inner, inside) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, bool, int)) else _plain(_in_json(value), inside)


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    return "null" if key is None else json.dumps(key) if isinstance(key, bool) else _own_text(key)


def _in_json(value: Any) -> Any:
    """The stand-in for a value that JSON has not."""
    if isinstance(value, (bytes, bytearray)):
        return bytes(value).decode("utf-8", "replace")
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=str)
    return _own_text(value)


def _own_text(value: Any) -> str:
    if is_generator(value):
        raise NoTextError("a generator inside a result has no text of its own; yield from perform itself")
    text = str(value)
    if isinstance(value, (type, ModuleType)) or inspect.isroutine(value) or _ADDRESS.fullmatch(text):
        raise NoTextError(f"{_named(value)} has no text of its own; perform returns text, or data for JSON")
    return text


def _named(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = getattr(value, "__name__", "")
    kind = type(value).__name__
    return f"the {kind} {name}" if isinstance(name, str) and name else f"a value of type {kind}"
