"""A reply in pieces, beside a plain envelope."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from envelopes.codecs.emergence import MAX_BYTES, encode
from envelopes.envelope import ERROR, Envelope
from envelopes.errors import MalformedError

Pieces = Callable[[], AsyncIterator[tuple[int, Envelope]]]


class StreamedReply(Envelope, frozen=True, kw_only=True):
    """A reply in pieces: itself it says that work began; ``pieces()`` gives numbered STREAMs, then the end."""

    pieces: Pieces


def fitting(reply: Envelope) -> bytes:
    """The encoded reply, or, where it is too large or cannot be written, an ERROR on its id that says so."""
    try:
        octets = encode(reply)
    except MalformedError as problem:
        return encode(_instead(reply, f"The answer cannot be sent: {problem}"))
    if len(octets) <= MAX_BYTES:
        return octets
    return encode(
        _instead(reply, f"The answer has {len(octets)} bytes; {MAX_BYTES} can be sent. It is in the record.")
    )


def _instead(reply: Envelope, message: str) -> Envelope:
    data = {"code": 500, "msg": message, "reason": "answer_too_large", "do": "Ask for less at once."}
    return Envelope(reply.id, reply.sender, reply.recipient, ERROR, data)
