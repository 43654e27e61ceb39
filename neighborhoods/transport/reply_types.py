"""A reply in pieces, beside a plain envelope."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable

from envelopes.envelope import Envelope

Pieces = Callable[[], AsyncIterator[tuple[int, Envelope]]]


class StreamedReply(Envelope, frozen=True, kw_only=True):
    """A reply in pieces: itself it says that work began; ``pieces()`` gives numbered STREAMs, then the end."""

    pieces: Pieces
