"""Conversations of an egg that wait for the next start: the same ones are not brought again, others of their size are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from twins.eggs.frames import Frame, encoded, make
from twins.eggs.parsed_egg import Part, Role
from twins.installer.restored_conversations import is_settled

KEY = "4f2a" * 16


class Record:
    """The conversations of a twin, by their texts."""

    def __init__(self, *texts: str) -> None:
        self._texts = texts

    def holds(self, key: str, frames: Iterable[Frame]) -> bool:
        return key == KEY and all(frame["payload"] in self._texts for frame in frames)


def said(text: str) -> bytes:
    return b"".join(encoded([make("garden", 0, "2026-11-21T09:40:00Z", "said", text, None)]))


def part(content: bytes) -> Part:
    def chunks() -> Iterator[bytes]:
        yield content

    return Part("frames.jsonl", Role.CONVERSATIONS, "frames.jsonl", len(content), chunks)


@pytest.mark.parametrize(
    ("waits", "known", "settled"),
    [
        ("dry", (), True),
        ("wet", (), False),
        ("", (), False),
        ("", ("dry",), True),
        ("wet", ("dry", "wet"), True),
        ("", ("wet",), False),
    ],
)
def test_conversations_are_settled_where_they_wait_or_are_known(
    tmp_path: Path, waits: str, known: tuple[str, ...], settled: bool
) -> None:
    waiting = tmp_path / "waiting.jsonl"
    waiting.write_bytes(said(waits) if waits else b"")
    assert is_settled(part(said("dry")), KEY, [waiting], Record(*known)) is settled


def test_conversations_that_do_not_hold_are_not_settled(tmp_path: Path) -> None:
    assert not is_settled(part(said("dry").replace(b"dry", b"wet")), KEY, [], Record("dry", "wet"))
