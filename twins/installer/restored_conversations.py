"""Conversations that came in an egg: kept beside the receipt until the threads have them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from twins.eggs.frames import ConversationSink, KnownConversations, decoded, verified
from twins.eggs.parsed_egg import Part
from twins.errors import BadEggError

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


def is_settled(part: Part, key: str, waiting: Iterable[Path], known: KnownConversations | None) -> bool:
    """True when the conversations of ``part`` are in the threads of ``key``, or ``waiting`` to go there.

    Frames that do not hold are not settled: the hatching refuses them.
    """
    alike = [path for path in waiting if path.stat().st_size == part.size]
    if alike:
        digest = part.sha256()
        for path in alike:
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() == digest:
                    return True
    try:
        return known is not None and known.holds(key, verified(decoded(part.chunks())))
    except BadEggError:
        return False


def _chunks(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk
