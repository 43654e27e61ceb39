"""Secrets that no line holds whole: literals in several pieces, values on the next line, base64 and hexadecimal text.

Each function gives the text that a program would read there, and its place in the file; ``secret_scan`` looks at it.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from twins.eggs.writers.archive_scan import is_packed

_BEFORE = 200
_MOST_PIECES = 64
_LEAST_CODED = 40
_MOST_CODED = 1 << 20
_SNIFFED = 32
_NEAR = 128

# "abc" "def", 'abc' + 'def', "abc" \ newline "def"; a line that ends in a backslash, or in the middle of a key
_GLUE = (
    rb"""["'`][ \t]{0,8}(?:[+.][ \t]{0,8})?(?:\\?\r?\n[ \t]{0,80})?(?:[+.][ \t]{0,8})?[rbfuRBFU]{0,2}["'`]"""
    rb"|\\\r?\n[ \t]{0,80}"
)
_JOINT = re.compile(rb"(?:" + _GLUE + rb"|\r?\n[ \t]{0,16})(?P<next>[\w+/=.~-]{3,400})")
_VALUE_JOINT = re.compile(_GLUE)
_VALUE_BEGIN = re.compile(
    rb"""(?P<name>[\w-]{0,48}\\?["'`]?\]?)[ \t]{0,8}(?::[ \t]{0,4}[A-Za-z][\w.]{0,20}[ \t]{0,8}(?==))?(?P<sign>=|:)"""
    rb"""[ \t]{0,8}(?:[|>][+-]?|\(|\\)?[ \t]{0,8}(?P<below>\r?\n[ \t]{0,80})?[rbfuRBFU]{0,2}(?P<quote>["'`]?)"""
)
_PIECE = re.compile(rb"""[^\s"'`\\()\[\]{}]{1,400}""")
_PLAIN_END = re.compile(rb"[ \t]{0,8}[),;]{0,2}[ \t]{0,8}(?:\r?\n|\Z)")
CLASSES = bytes(
    ord("x")
    if octet in b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
    else (ord("q") if octet in b"\"'`\\\r\n" else (ord("s") if octet in b"+/" else ord(" ")))
    for octet in range(256)
)
"""One pass over a file: ``x`` is of a key, ``s`` of base64 besides, ``q`` may end a piece."""
_CODED = re.compile(rb"[xs]+")
_LEAST_PIECE = 12  # a date has ten
_END_OF_PIECE = b"x" * _LEAST_PIECE + b"q"
_MIXED = re.compile(rb"[0-9_-]*[A-Za-z](?:[A-Za-z_-]*[0-9])|[A-Za-z_-]*[0-9][0-9_-]*[A-Za-z]")
"""Letters and digits: neither a word nor a date."""
LONG_RUN = 28
"""+ and / are rare in base64 of text, and in forty of anything so many others often stand in a row."""

_HEX = re.compile(rb"(?:[0-9a-f]{2})+|(?:[0-9A-F]{2})+")
_URL_SAFE = bytes.maketrans(b"-_", b"+/")
_TEXT = frozenset(range(0x20, 0x7F)) | {9, 10, 13}
_BREAK = re.compile(rb"(?:\\r)?(?:\\n)|\r?\n[ \t]{0,16}")


class OtherReading(NamedTuple):
    """A text that stands in a file in another form: its place there, and what may be in it.

    ``joints``: places in ``content`` where a key was broken; makers' keys that lie over one are looked for, and nothing
    else. Without joints ``content`` is a text of its own.
    """

    begin: int
    end: int
    content: bytes
    joints: tuple[int, ...] = ()


def other_readings(content: bytes, classes: bytes, long_runs: Sequence[int]) -> Iterator[OtherReading]:
    """Keys in pieces, and what stands there in base64 or in hexadecimal digits.

    ``classes`` is ``content`` translated by ``CLASSES``, ``long_runs`` the places where so many as ``LONG_RUN`` of
    its ``x`` begin.
    """
    yield from _broken_keys(content, classes)
    yield from _decoded_runs(content, classes, long_runs)


def _broken_keys(content: bytes, ends: bytes) -> Iterator[OtherReading]:
    """Places where something like a key goes on in the next literal, or on the next line."""
    at = ends.find(_END_OF_PIECE)
    while at >= 0:
        begin = at + _LEAST_PIECE
        following = begin + 1
        if (
            not content[at:begin].isalpha()
            and _MIXED.match(content, at, begin)
            and (joint := _JOINT.match(content, begin))
        ):
            pieces, joints = [content[max(0, begin - _BEFORE) : begin]], []
            length = len(pieces[0])
            while joint and len(pieces) < _MOST_PIECES:
                joints.append(length)
                pieces.append(joint["next"])
                length += len(joint["next"])
                following = joint.end()
                joint = _JOINT.match(content, following)
            yield OtherReading(begin, following, b"".join(pieces), tuple(joints))
        at = ends.find(_END_OF_PIECE, following - _LEAST_PIECE if following > begin + 1 else following)


def broken_value(content: bytes, at: int) -> tuple[int, int, bytes] | None:
    """The value that a name at ``at`` is given in several pieces, or on the next line: its position, and the line without breaks.

    None where it stands whole after its name.
    """
    begun = _VALUE_BEGIN.match(content, at)
    if begun is None:
        return None
    begin = end = begun.end()
    pieces: list[bytes] = []
    while len(pieces) < _MOST_PIECES and (piece := _PIECE.match(content, end)):
        pieces.append(piece[0])
        end = piece.end()
        joint = _VALUE_JOINT.match(content, end)
        if joint is None or (joint[0][:1] in b"\"'`") != bool(begun["quote"]):
            break
        end = joint.end()
    if not pieces or (len(pieces) == 1 and begun["below"] is None):
        return None
    if not begun["quote"] and not _PLAIN_END.match(content, end):
        return None
    quote = b'"' if begun["quote"] else b""
    return begin, end, begun["name"] + begun["sign"] + quote + b"".join(pieces) + quote + b"\n"


def _decoded_runs(content: bytes, classes: bytes, long_runs: Sequence[int]) -> Iterator[OtherReading]:
    """Text, or something packed, that stands there in base64 or in hexadecimal digits; over several lines, too."""
    left, end = _MOST_CODED, 0
    for at in long_runs:
        if at < end or left <= 0:
            continue
        before = classes[max(end, at - _NEAR) : at]
        begin = at - len(before) + len(before.rstrip(b"xs"))
        end = _end_of(classes, at)
        if end - begin < _LEAST_CODED:
            continue
        octets = _decoded(content[begin : begin + _SNIFFED])
        if octets is not None and (is_packed(octets) or _is_text(octets)):
            end, coded = _over_lines(content, classes, begin, end)
            whole = _decoded(coded[:left])
            left -= len(coded)
            if whole:
                yield OtherReading(begin, end, whole)


def _end_of(classes: bytes, at: int) -> int:
    match = _CODED.match(classes, at)
    return match.end() if match else at


def _over_lines(content: bytes, classes: bytes, begin: int, end: int) -> tuple[int, bytes]:
    parts = [content[begin:end]]
    while gap := _BREAK.match(content, end):
        start, stop = gap.end(), _end_of(classes, gap.end())
        if stop - start < 4:
            break
        parts.append(content[start:stop])
        end = stop
        if len(parts[-1]) < len(parts[0]):
            break
    return end, b"".join(parts)


def _decoded(coded: bytes) -> bytes | None:
    if _HEX.fullmatch(coded):
        return bytes.fromhex(coded.decode("ascii"))
    try:
        whole = coded[:-1] if len(coded) % 4 == 1 else coded  # no text ends so; its end is something else
        return base64.b64decode(whole.translate(_URL_SAFE) + b"=" * (-len(whole) % 4))
    except binascii.Error:
        return None


def _is_text(octets: bytes) -> bool:
    return all(octet in _TEXT for octet in octets)
