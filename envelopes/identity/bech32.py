"""Bech32 (BIP-173): octets as text of 32 letters, with a prefix and a checksum. age spells its keys so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

_LETTERS: Final = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_VALUES: Final = {letter: value for value, letter in enumerate(_LETTERS)}
_GENERATOR: Final = (0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3)
_CHECKSUM: Final = 6
_LONGEST: Final = 90
_SEPARATOR: Final = "1"


def encode(prefix: str, octets: bytes) -> str:
    """``octets`` in lower case. Raises ``ValueError`` when prefix and octets do not fit in 90 characters."""
    values = _regrouped(octets, 8, 5)
    if spare := len(octets) * 8 % 5:
        last = octets[-1] & ((1 << spare) - 1)
        values.append(last << (5 - spare))
    text = encode_values(prefix, values)
    decode_values(text)
    return text


def decode(text: str) -> tuple[str, bytes]:
    """Prefix, in lower case, and octets. Raises ``ValueError``."""
    prefix, values = decode_values(text)
    spare = len(values) * 5 % 8
    if spare >= 5 or (values and values[-1] & ((1 << spare) - 1)):
        raise ValueError("the last letter stands for more than the last octet")
    return prefix, bytes(_regrouped(values, 5, 8))


def encode_values(prefix: str, values: Sequence[int]) -> str:
    """Numbers below 32 as text, with their checksum."""
    remainder = _remainder([*_expanded(prefix), *values, *[0] * _CHECKSUM]) ^ 1
    checksum = [remainder >> 5 * position & 31 for position in reversed(range(_CHECKSUM))]
    return f"{prefix}{_SEPARATOR}{''.join(_LETTERS[value] for value in (*values, *checksum))}"


def decode_values(text: str) -> tuple[str, list[int]]:
    """Prefix, in lower case, and numbers below 32. Raises ``ValueError``."""
    if len(text) > _LONGEST or not all("!" <= sign <= "~" for sign in text):
        raise ValueError("too long, or no plain letters")
    if text not in (text.lower(), text.upper()):
        raise ValueError("upper and lower case are mixed")
    prefix, separator, letters = text.lower().rpartition(_SEPARATOR)
    if not separator or not prefix or len(letters) < _CHECKSUM:
        raise ValueError("no prefix, or no checksum")
    if not _VALUES.keys() >= set(letters):
        raise ValueError("a letter that stands for nothing")
    values = [_VALUES[letter] for letter in letters]
    if _remainder([*_expanded(prefix), *values]) != 1:
        raise ValueError("the checksum differs")
    return prefix, values[:-_CHECKSUM]


def _expanded(prefix: str) -> list[int]:
    """The prefix as the checksum counts it: high bits, a zero, low bits."""
    return [*(ord(sign) >> 5 for sign in prefix), 0, *(ord(sign) & 31 for sign in prefix)]


def _remainder(values: Iterable[int]) -> int:
    """The remainder of the values, read as a polynomial over 32 elements, by the generator."""
    remainder = 1
    for value in values:
        top = remainder >> 25
        remainder = (remainder & 0x1FF_FFFF) << 5 ^ value
        for position, part in enumerate(_GENERATOR):
            if top >> position & 1:
                remainder ^= part
    return remainder


def _regrouped(values: Iterable[int], bits: int, into: int) -> list[int]:
    """The same bits in groups of another size; those that fill no group are left out."""
    found, pending, count = [], 0, 0
    for value in values:
        pending, count = (pending << bits | value) & 0xFFF, count + bits
        while count >= into:
            count -= into
            found.append(pending >> count & ((1 << into) - 1))
    return found
