"""What a request may be answered with beside a plain envelope: pieces, and what is not on the disk yet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from envelopes.envelope import Envelope

Pieces = Callable[[], AsyncIterator[tuple[int, Envelope]]]


class StreamedReply(Envelope, frozen=True, kw_only=True):
    """A reply in pieces: itself it says that work began; ``pieces()`` gives numbered STREAMs, then the end."""

    pieces: Pieces


class Early(Envelope, frozen=True, kw_only=True):
    """A DONE that is on its way to the disk. It counts once ``on_disk`` is done, which may raise a ``ReportableError``."""

    on_disk: asyncio.Future[Any]
