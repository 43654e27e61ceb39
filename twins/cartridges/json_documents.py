"""JSON cartridges as text: read strictly, written so that people can read and compare them; and their timestamps."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import orjson

from envelopes.codecs import strict_json
from envelopes.codecs.strict_json import MAX_DEPTH, strict_object
from twins.errors import BadCartridgeError

MAX_BYTES = 32 << 20

Document = dict[str, Any]


def parse(octets: bytes, *, name: str = "The cartridge") -> Document:
    """The object in ``octets``. ``name`` is the file's name, for what is said when it is refused.

    UTF-8 (a byte order mark passes, editors add it). Refused with ``BadCartridgeError``: anything but an
    object, a key twice in one object, NaN and infinities, floats beyond binary64, integers beyond 64
    bits, half characters, more than ``MAX_BYTES`` or ``MAX_DEPTH`` levels.
    """
    if len(octets) > MAX_BYTES:
        raise _damaged(name, f"{len(octets):,} bytes, {MAX_BYTES:,} are allowed")
    try:
        return strict_object(octets)
    except ValueError as error:
        if octets.lstrip()[:1] in (b"(", b";"):
            raise BadCartridgeError(
                f"{name} is a program, and no cartridge yet; nothing was loaded.",
                do=f"rappd cartridge new NAME --program {name}",
            ) from error
        raise _damaged(name, str(error)) from error


def encode(document: Document) -> bytes:
    """``document`` as a file: indented by two, keys in their order, UTF-8, one newline at the end.

    Raises ``BadCartridgeError`` for what ``parse`` would not take back.
    """
    octets = b""
    if levels(document) <= MAX_DEPTH:
        try:
            octets = orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
        except orjson.JSONEncodeError as error:
            raise BadCartridgeError(
                f"The cartridge cannot be written ({error}).", do="Leave that out."
            ) from error
    if not 0 < len(octets) <= MAX_BYTES:
        raise BadCartridgeError(
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
    """True when two JSON values are equal as JSON: 1, 1.0 and true are three different things."""
    if type(a) is not type(b):
        return False
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(value, b[key]) for key, value in a.items())
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def levels(value: Any) -> int:
    """The depth of nested objects and lists, the outermost counted."""
    return sum(1 for _ in strict_json.levels(value)) if isinstance(value, dict | list) else 0


def _damaged(name: str, why: str) -> BadCartridgeError:
    return BadCartridgeError(
        f"{name} is damaged ({why}); nothing was loaded.", do="Get it again, or mend it."
    )


def format_timestamp(now: datetime) -> str:
    """A moment as the published Buddy writes it, ``2026-04-12T14:33:00.000Z``."""
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_timestamp(text: Any) -> datetime | None:
    """The moment that ``text`` names; None for anything else."""
    if not isinstance(text, str):
        return None
    try:
        found = datetime.fromisoformat(text)
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None
