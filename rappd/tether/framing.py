"""Frames of at most 16 KiB: longer messages go in chunks, and come together again within bounds."""

from __future__ import annotations

import json
import secrets
from typing import Any

from envelopes.codecs.bounded_json import bounded_json
from envelopes.codecs.privileged import PrivilegedMessageError, refuse_privileged

FRAME_BYTES = 16 << 10
MESSAGE_BYTES = 1 << 20
MOST_CHUNKS = 256
_PIECE = 5_000
"""Characters in a chunk: three bytes each at most, and an escape for a quote costs less than that."""


class FrameError(ValueError):
    """A frame that is no message, too long, or a chunk out of order."""


def frames_of(message: dict[str, Any]) -> list[str]:
    """The frames that carry a message, as JSON. Raises ``FrameError`` for one above 1 MiB."""
    text = json.dumps(message, ensure_ascii=False)
    size = len(text.encode())
    if size <= FRAME_BYTES:
        return [text]
    pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
    if size > MESSAGE_BYTES or len(pieces) > MOST_CHUNKS:
        raise FrameError("the message is above 1 MiB")
    id = secrets.token_hex(4)
    return [
        json.dumps(
            {"type": "chunk", "id": id, "n": number, "total": len(pieces), "data": piece}, ensure_ascii=False
        )
        for number, piece in enumerate(pieces)
    ]


class Assembler:
    """Puts one phone's frames together. At most one message at a time is unfinished."""

    def __init__(self) -> None:
        self._id = ""
        self._pieces: list[str] = []
        self._total = 0
        self._size = 0

    def feed(self, text: str) -> dict[str, Any] | None:
        """The message that this frame is, or completes; None while chunks are missing. Raises ``FrameError``."""
        if len(text) > FRAME_BYTES or len(text.encode(errors="replace")) > FRAME_BYTES:
            raise FrameError("the frame is above 16 KiB")
        frame = _object(text)
        if frame.get("type") != "chunk":
            if self._pieces:
                raise FrameError("a message is unfinished")
            return frame
        return self._add(frame)

    def _add(self, chunk: dict[str, Any]) -> dict[str, Any] | None:
        id, number, total, data = (chunk.get(key) for key in ("id", "n", "total", "data"))
        if not (isinstance(id, str) and isinstance(data, str) and type(number) is int and type(total) is int):
            raise FrameError("the chunk is malformed")
        if number == 0 and not self._pieces:
            self._id, self._total, self._size = id, total, 0
        if (
            id != self._id
            or total != self._total
            or number != len(self._pieces)
            or not 0 < total <= MOST_CHUNKS
        ):
            raise FrameError("the chunk is out of order")
        self._pieces.append(data)
        self._size += len(data.encode(errors="replace"))
        if self._size > MESSAGE_BYTES:
            raise FrameError("the message is above 1 MiB")
        if len(self._pieces) < total:
            return None
        text, self._pieces = "".join(self._pieces), []
        return _object(text)


def _object(text: str) -> dict[str, Any]:
    try:
        found = bounded_json(text.encode(), most_bytes=MESSAGE_BYTES)
    except ValueError as error:  # half a character is none that can be encoded
        raise FrameError("the frame is no JSON") from error
    if not isinstance(found, dict):
        raise FrameError("the frame is no JSON object")
    if "privileged" in text or "\\u" in text:  # nothing else can name that namespace
        try:
            refuse_privileged(found, listener="for phones")
        except PrivilegedMessageError as refused:
            raise FrameError("the frame is not allowed") from refused
    return found
