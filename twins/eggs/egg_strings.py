"""Compact egg strings: a list of registry seeds as one word that people can send each other.

Seeds are numbers that stand for agents of a registry. They are written big-endian one after another, 8 bytes
each, and as URL-safe base64 without ``=``. When one of them needs more than 64 bits all take 9 bytes and the
text begins with ``v2.``. Nothing to do with the ``.egg`` files that hold something living.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence

from twins.errors import BadEggError

MAX_CHARACTERS = 1 << 20
_WIDE = "v2."
_ALPHABET = re.compile(r"[A-Za-z0-9_-]*")


def encode(seeds: Sequence[int]) -> str:
    """The string for ``seeds``, in their order, repetitions kept. Raises ``BadEggError`` for what is no seed."""
    if not isinstance(seeds, (list, tuple)) or not all(_is_seed(seed) for seed in seeds):
        raise BadEggError("Seeds are whole numbers from 0 up, of 72 bits at most.", do="Look at the seeds.")
    wide = any(seed >> 64 for seed in seeds)
    octets = b"".join(seed.to_bytes(9 if wide else 8, "big") for seed in seeds)
    return (_WIDE if wide else "") + base64.urlsafe_b64encode(octets).rstrip(b"=").decode()


def decode(text: str) -> list[int]:
    """The seeds in a string; the empty string is an empty egg.

    Strict: raises ``BadEggError`` for letters outside the URL-safe alphabet (spaces, ``=``, ``+``, ``/``), a
    length that is no whole number of seeds, and bits behind the last seed. ``v2.`` with seeds that would
    need only 8 bytes is taken: published encoders may have chosen so.
    """
    wide = text.startswith(_WIDE)
    letters = text[len(_WIDE) :] if wide else text
    if len(letters) > MAX_CHARACTERS:
        raise _refused(f"has {len(letters)} letters, at most {MAX_CHARACTERS} are read")
    match = _ALPHABET.match(letters)
    end = match.end() if match else 0
    if end < len(letters):
        raise _refused(f"has a letter that no egg string has ({letters[end]!a}, at {end + 1})")
    try:
        octets = base64.urlsafe_b64decode(letters + "=" * (-len(letters) % 4))
    except binascii.Error as error:
        raise _refused("was cut off: its length fits no number of bytes") from error
    width = 9 if wide else 8
    if len(octets) % width:
        raise _refused(f"was cut off: {len(octets)} bytes are no whole number of seeds")
    if base64.urlsafe_b64encode(octets).rstrip(b"=").decode() != letters:
        raise _refused("was changed at its end: it holds bits that belong to no seed")
    return [int.from_bytes(octets[at : at + width], "big") for at in range(0, len(octets), width)]


def _is_seed(seed: object) -> bool:
    return isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 1 << 72


def _refused(why: str) -> BadEggError:
    return BadEggError(f"This egg string {why}; nothing was written.", do="Copy it again, whole.")
