"""Frames of a model server's answer: JSON values out of one JSON body, JSON lines, or an event stream.

The first byte decides between JSON and an event stream, whatever the content type says and whatever was asked
for: servers label either as the other. An event stream is read as the HTML standard describes it (section
"Server-sent events"), and leniently where servers of the field differ from it: a JSON line without ``data:``, two
``data:`` lines that are an object each, ``error:`` as a field (llama.cpp), a last event without an empty line.
"""

from __future__ import annotations

import codecs
import json
import re
from typing import Any

import msgspec

from envelopes.codecs.bounded_json import bounded_json

MOST_BYTES = 4 << 20
"""Of one line or one JSON body: more than a million tokens, and read within 50 ms."""
_MOST_REREAD = 256 << 10
"""Bytes of a value that is read again by the slower, lenient parser (about 10 MB/s): 25 ms."""
_MOST_KEPT = 2000
"""Characters kept of what is no JSON, to say what came instead."""
_BOM = b"\xef\xbb\xbf"
_LINE_ENDS = re.compile(rb"(?:\r\n|\n|\r)+")
_ONE_END = (b"\n", b"\r", b"\r\n")
_MOST_LINES = 300_000
"""Of one answer: a line takes 2 µs, and a hundred thousand tokens have two lines each."""
_DONE = "[DONE]"


class Value(msgspec.Struct, frozen=True):
    """A JSON value; ``event`` is the name of its event, "" where it has none."""

    value: Any
    event: str = ""


class Done(msgspec.Struct, frozen=True):
    """The mark ``[DONE]`` of an event stream."""


class Unreadable(msgspec.Struct, frozen=True):
    """Bytes that are no JSON: ``text`` is its beginning. ``too_long``: it went beyond ``MOST_BYTES``."""

    text: str
    too_long: bool = False


Frame = Value | Done | Unreadable


class AnswerFraming:
    """Splits the bytes of one answer into frames. ``feed`` takes any cut of them, ``finish`` the end."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._started = False
        self._whole = False
        self._scanned = 0
        self.stray = ""
        """The first text that is neither JSON nor a field of an event stream, as a web page or a proxy's sentence is."""
        self._data: list[str] = []
        self._data_size = 0
        self._event = ""
        self._after_return = False
        self._ended = False
        self._count = 0

    def feed(self, octets: bytes) -> list[Frame]:
        """The frames that are complete with these bytes."""
        if self._ended or not octets:
            return []
        self._buffer += octets
        if not self._started and not self._start():
            return []
        if self._whole:
            return self._too_long() if len(self._buffer) > MOST_BYTES else []
        return self._lines()

    def pause(self) -> list[Frame]:
        """The frames that are complete although the server says no more: a JSON body on an open connection."""
        if not self._whole or self._ended or len(self._buffer) == self._scanned:
            return []
        self._scanned = len(self._buffer)
        found = parse(bytes(self._buffer))
        if isinstance(found, Unreadable):
            return []
        self._ended = True
        return [found]

    def finish(self) -> list[Frame]:
        """The frames that the end of the bytes completes."""
        if self._ended:
            return []
        if self._whole:
            self._ended = True
            return _body(bytes(self._buffer))
        frames: list[Frame] = []
        if self._buffer:
            frames += self._line(bytes(self._buffer))
        frames += self._dispatch()
        self._ended = True
        return frames

    def _start(self) -> bool:
        """Takes a byte order mark and blanks off; True once the first byte of the answer is there."""
        if len(self._buffer) < len(_BOM) and _BOM.startswith(self._buffer):
            return False
        if self._buffer.startswith(_BOM):
            del self._buffer[: len(_BOM)]
        blanks = len(self._buffer) - len(self._buffer.lstrip())
        del self._buffer[:blanks]
        if not self._buffer:
            return False
        self._started = True
        self._whole = self._buffer[0] in b'{[<"'
        return True

    def _too_long(self) -> list[Frame]:
        self._ended = True
        return [Unreadable(_shown(bytes(self._buffer[:_MOST_KEPT])), too_long=True)]

    def _lines(self) -> list[Frame]:
        frames: list[Frame] = []
        if self._after_return and self._buffer.startswith(b"\n"):
            del self._buffer[:1]
            self._scanned = 0
        self._after_return = False
        begin = 0
        while match := _LINE_ENDS.search(self._buffer, max(begin, self._scanned)):
            frames += self._line(bytes(self._buffer[begin : match.start()]))
            if match[0] not in _ONE_END:  # an empty line follows, or many
                frames += self._dispatch()
            begin = match.end()
            self._scanned = 0
            self._count += 1
            if self._count > _MOST_LINES:
                return [*frames, *self._too_long()]
            if self._ended:
                return frames
        # A line feed that follows in the next piece belongs to this carriage return.
        self._after_return = begin == len(self._buffer) > 0 and self._buffer.endswith(b"\r")
        del self._buffer[:begin]
        self._scanned = len(self._buffer)
        if len(self._buffer) + self._data_size > MOST_BYTES:
            frames += self._too_long()
        return frames

    def _line(self, line: bytes) -> list[Frame]:
        if not line:
            return self._dispatch()
        if line[:1] in (b"{", b"["):  # an error without framing, or lines of JSON
            return [parse(line)]
        text = line.decode("utf-8", "replace")
        if self._data and text[:5] != "data:" and not _FIELD.match(text):
            return []  # the second line of a value that a server printed over several
        field, colon, value = text.partition(":")
        value = value.removeprefix(" ")
        if field == "data":
            self._data.append(value)
            self._data_size += len(line)
        elif field == "event":
            self._event = value.strip()
        elif field == "error" and colon:
            return [Value({"error": _lenient(value)}, "error")]
        elif field and field not in ("id", "retry"):
            self.stray = self.stray or text[:_MOST_KEPT]
        return []

    def _dispatch(self) -> list[Frame]:
        lines, event = self._data, self._event
        self._data, self._event, self._data_size = [], "", 0
        if not lines:
            return []
        whole = "\n".join(lines)
        if whole.strip() == _DONE:
            self._ended = True
            return [Done()]
        found = parse(whole.encode("utf-8", "replace"), event)
        if isinstance(found, Value) or len(lines) == 1:
            return [found]
        frames: list[Frame] = []
        for line in lines:  # a server that leaves the empty line between two events out
            if line.strip() == _DONE:
                self._ended = True
                return [*frames, Done()]
            frames.append(parse(line.encode("utf-8", "replace"), event))
        return frames


_FIELD = re.compile(r"(?:data|event|id|retry|error)?:|(?:data|event|id|retry)$")


def parse(octets: bytes, event: str = "") -> Frame:
    """One JSON value, read leniently: raw control characters in texts, NaN (as null) and half characters pass."""
    try:
        return Value(bounded_json(octets, most_bytes=MOST_BYTES), event)
    except ValueError:
        pass
    text = octets.decode("utf-8", "replace")
    if len(octets) <= _MOST_REREAD:
        try:
            # RecursionError: thousands of levels. ValueError: also integers of more than 4,300 digits.
            return Value(json.loads(text, strict=False, parse_constant=_no_number, parse_int=_integer), event)
        except (ValueError, RecursionError):
            pass
    return Unreadable(text[:_MOST_KEPT])


def _body(octets: bytes) -> list[Frame]:
    """The value of a JSON body, else those of its lines."""
    found = parse(octets)
    if isinstance(found, Value):
        return [found]
    lines = [line for line in octets.splitlines() if line.strip()]
    frames = [parse(line.removeprefix(b"data:").strip()) for line in lines[:_MOST_LINES] if line[0] in b"{d"]
    if frames and isinstance(frames[0], Value):
        return frames
    return [found]


def _lenient(text: str) -> Any:
    found = parse(text.encode("utf-8", "replace"))
    return found.value if isinstance(found, Value) else text


def _shown(octets: bytes) -> str:
    return codecs.decode(octets, "utf-8", "replace")


def _no_number(_: str) -> None:
    return None


def _integer(text: str) -> int | float:
    return int(text) if len(text) <= 20 else float(text)
