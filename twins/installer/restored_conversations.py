"""Conversations that came in an egg: kept beside the receipt until the threads have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from twins.eggs.frames import ConversationSink, decoded, verified

SUFFIX = ".frames.json"
_CHUNK = 1 << 20


def check(path: Path) -> int:
    """The number of frames in the file at ``path``. Raises ``BadEggError`` unless each of them holds."""
    return sum(1 for _ in verified(decoded(_chunks(path))))


def deliver(path: Path, key: str, sink: ConversationSink) -> int:
    """Hands the frames kept at ``path`` over, then lets go of them; how many were new.

    Killed in between, it is done again: the threads pass over what they have.
    """
    count = sink.restore(key, verified(decoded(_chunks(path))))
    path.unlink()
    return count


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
