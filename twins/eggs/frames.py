"""Frames: a conversation as it travels in an egg, ``data/frames.json`` (``rapp-frame/1.0``).

One frame is ``{stream_id, frame_n, utc, kind, payload, prev_hash, hash}``, chained per stream:
``hash = sha256(prev_hash | utc | frame_n | kind | JSON of the payload)``, joined by bars, in hex. A stream
begins with frame 0, whose ``prev_hash`` is null and counts as empty text. Published writers spell the
payload's JSON differently; frames made here have their keys sorted and no spaces, so that JSON as a page
writes it gives the same bytes. Further keys are kept and not covered by the hash.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any, Final, Protocol

import orjson

from twins.errors import BadEggError

SCHEMA: Final = "rapp-frame/1.0"
MEMBER: Final = "data/frames.json"
"""The path of the frames in an egg."""
MAX_WHOLE: Final = 64 << 20
"""Bytes of a frames file that is not written one frame a line, and so is read at once."""
MAX_LINE: Final = 16 << 20

Frame = dict[str, Any]

_PIECE = 1 << 18
_HASH = re.compile(r"[0-9a-f]{64}")


class ConversationSource(Protocol):
    """Gives a twin's conversations."""

    def frames(self, key: str) -> Iterator[Frame]:
        """The frames of the twin with that key, each stream in its order."""


class ConversationSink(Protocol):
    """Takes a hatched twin's conversations."""

    def restore(self, key: str, frames: Iterable[Frame]) -> int:
        """Takes in verified frames for the twin with that key; returns how many were new."""


class KnownConversations(Protocol):
    """Knows what was said to twins, with the daemon up or down."""

    def holds(self, key: str, frames: Iterable[Frame]) -> bool:
        """True when restoring these frames for the twin with that key would add nothing."""


def make(stream_id: str, frame_n: int, utc: str, kind: str, payload: Any, prev_hash: str | None) -> Frame:
    """One frame. ``payload`` is what JSON can say; ``prev_hash`` belongs to frame ``frame_n - 1``."""
    frame: Frame = {
        "stream_id": stream_id,
        "frame_n": frame_n,
        "utc": utc,
        "kind": kind,
        "payload": orjson.loads(_sorted(payload)),
        "prev_hash": prev_hash,
    }
    frame["hash"] = hash_of(frame)
    return frame


def chained(
    stream_id: str, entries: Iterable[tuple[str, str, Any]], *, after: Frame | None = None
) -> Iterator[Frame]:
    """A stream out of (utc, kind, payload), from frame 0 on or going on ``after`` a frame."""
    for utc, kind, payload in entries:
        number, previous = (after["frame_n"] + 1, after["hash"]) if after else (0, None)
        after = make(stream_id, number, utc, kind, payload, previous)
        yield after


def hash_of(frame: Frame) -> str:
    """The hash of a frame as frames are made here; what the frame itself says under ``hash`` plays no part."""
    return _hash(frame, frame["prev_hash"] or "", _sorted(frame["payload"]))


def holds(frame: Frame) -> bool:
    """True when the frame's hash is right under any published spelling of its payload."""
    previous, payload = frame["prev_hash"], frame["payload"]
    links = (previous,) if previous else ("", "null", "None")
    try:
        return any(
            _hash(frame, link, spell(payload)) == frame["hash"] for link in links for spell in _SPELLINGS
        )
    except (TypeError, UnicodeEncodeError, RecursionError):  # half a surrogate pair, a number beyond 64 bits
        return False


def verified(frames: Iterable[object]) -> Iterator[Frame]:
    """Lets frames through whose shape, hash and chain hold. Raises ``BadEggError`` at the first that does not.

    Streams may be interleaved. A stream may begin later than with frame 0: then it is a piece of one, and
    what came before is not known.
    """
    heads: dict[str, Frame] = {}
    for frame in frames:
        if not _is_frame(frame):
            raise _damaged("what is no frame")
        assert isinstance(frame, dict)
        stream, number = frame["stream_id"], frame["frame_n"]
        head = heads.get(stream)
        if head is not None and (number != head["frame_n"] + 1 or frame["prev_hash"] != head["hash"]):
            raise _damaged(f"frame {number} does not follow frame {head['frame_n']}")
        if head is None and number == 0 and frame["prev_hash"]:
            raise _damaged("frame 0 follows another")
        if not holds(frame):
            raise _damaged(f"frame {number}")
        heads[stream] = frame
        yield frame


def encoded(frames: Iterable[Frame]) -> Iterator[bytes]:
    """The file's bytes in large pieces: a JSON array with one frame a line. Without frames, nothing at all."""
    pending: list[bytes] = []
    size = 0
    before = b"[\n"
    for frame in frames:
        pending += (before, orjson.dumps(frame))
        before = b",\n"
        size += len(pending[-1])
        if size > _PIECE:
            yield b"".join(pending)
            pending.clear()
            size = 0
    if before != b"[\n":
        yield b"".join((*pending, b"\n]\n"))


def decoded(chunks: Iterable[bytes]) -> Iterator[object]:
    """The frames of a file, not verified.

    Streaming where the file has one frame a line; otherwise a JSON array, or an object that has one under
    ``frames``, of ``MAX_WHOLE`` bytes at most. Raises ``BadEggError``.
    """
    pieces = iter(chunks)
    start = b""
    for piece in pieces:
        start += piece
        if len(start) > len(_BY_LINE):
            break
    rest = chain((start,), pieces)
    if start.startswith(_BY_LINE):
        yield from _by_line(rest)
    else:
        yield from _whole(rest)


_BY_LINE: Final = b'[\n{"'


def _by_line(chunks: Iterable[bytes]) -> Iterator[object]:
    lines = _lines(chunks)
    next(lines)
    ended = False
    for line in lines:
        if ended:
            if line.strip():
                raise _damaged("something after the last frame")
        elif line == b"]":
            raise _damaged("a comma after the last frame")
        elif line.endswith(b","):
            yield _parsed(line[:-1])
        else:
            yield _parsed(line)
            if next(lines, b"") != b"]":
                raise _damaged("no comma between two frames")
            ended = True
    if not ended:
        raise _damaged("the end is missing")


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    pending: list[bytes] = []
    size = 0
    for piece in chunks:
        *whole, last = piece.split(b"\n")
        for line in whole:
            yield b"".join((*pending, line))
            pending.clear()
            size = 0
        pending.append(last)
        size += len(last)
        if size > MAX_LINE:
            raise _damaged("a frame too large")
    yield b"".join(pending)


def _whole(chunks: Iterable[bytes]) -> Iterator[object]:
    pending: list[bytes] = []
    size = 0
    for piece in chunks:
        pending.append(piece)
        size += len(piece)
        if size > MAX_WHOLE:
            raise _damaged("too many at once")
    found = _parsed(b"".join(pending))
    frames = found.get("frames") if isinstance(found, dict) else found
    if not isinstance(frames, list):
        raise _damaged("no list of frames")
    yield from frames


def _parsed(text: bytes) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _damaged("what is not JSON") from error


def _is_frame(frame: object) -> bool:
    if not isinstance(frame, dict) or "payload" not in frame:
        return False
    number, previous = frame.get("frame_n"), frame.get("prev_hash")
    return (
        isinstance(number, int)
        and not isinstance(number, bool)
        and number >= 0
        and isinstance(frame.get("stream_id"), str)
        and isinstance(frame.get("utc"), str)
        and isinstance(frame.get("kind"), str)
        and (not previous or _is_hash(previous))
        and "prev_hash" in frame
        and _is_hash(frame.get("hash"))
    )


def _is_hash(text: object) -> bool:
    return isinstance(text, str) and _HASH.fullmatch(text) is not None


def _hash(frame: Frame, previous: str, payload: bytes) -> str:
    head = f"{previous}|{frame['utc']}|{frame['frame_n']}|{frame['kind']}|"
    return hashlib.sha256(head.encode() + payload).hexdigest()


def _sorted(payload: Any) -> bytes:
    return orjson.dumps(payload, option=orjson.OPT_SORT_KEYS)


_SPELLINGS = (
    _sorted,
    orjson.dumps,
    lambda payload: json.dumps(payload).encode(),
    lambda payload: json.dumps(payload, sort_keys=True).encode(),
)


def _damaged(how: str) -> BadEggError:
    return BadEggError(f"The conversations in this egg are damaged: {how}.", do="Get the egg again.")
