"""Excerpts of what was said: short text that shows each word that was searched for."""

from __future__ import annotations

import re
from collections.abc import Sequence

LONGEST = 180
_GAP = " … "
_LEAST = 10
"""Characters shown on both sides of a word at least."""


def excerpt(text: str, words: Sequence[str], most: int = LONGEST) -> str:
    """Returns about ``most`` characters of ``text`` that show the first place of each of ``words``; "" where one is missing.

    Places far from each other become pieces with … between them.
    """
    text = " ".join(text.split())
    places = [place for word in words if (place := _place(text, word)) is not None]
    if len(places) < len(words) or not places:
        return ""
    room = max(_LEAST, (most - sum(end - start for start, end in places)) // (2 * len(places)))
    pieces: list[tuple[int, int]] = []
    for start, end in sorted((_begin(text, start, room), _end(text, end, room)) for start, end in places):
        if pieces and start <= pieces[-1][1] + len(_GAP):
            pieces[-1] = (pieces[-1][0], max(end, pieces[-1][1]))
        else:
            pieces.append((start, end))
    shown = _GAP.join(text[start:end].strip() for start, end in pieces)
    return f"{'… ' if pieces[0][0] else ''}{shown}{' …' if pieces[-1][1] < len(text) else ''}"


def _begin(text: str, start: int, room: int) -> int:
    """At most ``room`` before ``start``, where a word begins."""
    if start <= room:
        return 0
    return text.find(" ", start - room - 1, start) + 1 or start - room


def _end(text: str, end: int, room: int) -> int:
    if end + room >= len(text):
        return len(text)
    space = text.rfind(" ", end, end + room + 1)
    return space if space >= 0 else end + room


def _place(text: str, word: str) -> tuple[int, int] | None:
    found = re.search(re.escape(word), text, re.IGNORECASE)  # lower() may change the length of a text: İ
    if found is not None:
        return found.span()
    at = text.lower().find(word.lower())
    return None if at < 0 else (min(at, len(text)), min(at + len(word), len(text)))
