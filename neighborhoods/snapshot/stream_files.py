"""The events of a checked tar stream as files, each with its content."""

from __future__ import annotations

from collections.abc import Iterator

from neighborhoods.snapshot.tar_guard import TarEntry


def stream_files(events: Iterator[TarEntry | bytes]) -> Iterator[tuple[TarEntry, Iterator[bytes]]]:
    """(entry, content) of each file. What is not read of a content is skipped when the next file is asked for."""
    for event in events:
        assert isinstance(event, TarEntry)
        content = _content(events, event.size)
        yield event, content
        for _ in content:
            pass


def _content(events: Iterator[TarEntry | bytes], size: int) -> Iterator[bytes]:
    while size:
        piece = next(events)
        assert isinstance(piece, bytes)
        size -= len(piece)
        yield piece
