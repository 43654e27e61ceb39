"""SHA-256 hashes as text, many at once: an egg may carry tens of thousands."""

from __future__ import annotations

from collections.abc import Collection

_DIGITS = 64


def are_digests(found: Collection[object]) -> bool:
    """True when each is 64 digits in small hexadecimal."""
    try:
        joined = "".join(found)  # type: ignore[arg-type]  # what is no text is refused here
    except TypeError:
        return False
    alike = len(joined) == _DIGITS * len(found) and all(map(_DIGITS.__eq__, map(len, found)))  # type: ignore[arg-type]
    return alike and joined.isascii() and not joined.encode().translate(None, b"0123456789abcdef")
