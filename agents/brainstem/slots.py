"""Slots of an answer: ``|||VOICE|||`` and ``|||TWIN|||``, in any order, never leaked."""

from __future__ import annotations

import re
from typing import NamedTuple

VOICE = "|||VOICE|||"
TWIN = "|||TWIN|||"

_MARK = re.compile(r"\|\|\|(VOICE|TWIN)\|\|\|")
_LONGEST = max(len(VOICE), len(TWIN))


class Slots(NamedTuple):
    """An answer taken apart; a slot that was not there is ""."""

    main: str
    voice: str
    twin: str


def split(text: str) -> Slots:
    """Cuts ``text`` at every delimiter. A slot runs to the next one; a repeated slot is joined."""
    if "|||" not in text:
        return Slots(text.strip(), "", "")
    pieces = _MARK.split(text)
    slots = {"VOICE": [], "TWIN": []}  # type: dict[str, list[str]]
    for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
        slots[name].append(body.strip())
    return Slots(
        _unwrap(pieces[0].strip(), "main"),
        _unwrap(_join(slots["VOICE"]), "voice"),
        _unwrap(_join(slots["TWIN"]), "twin"),
    )


class MainStream:
    """Lets through only the main part of a text that arrives in pieces."""

    def __init__(self) -> None:
        self._held = ""
        self._done = False

    def feed(self, piece: str) -> str:
        """What may be shown now; the start of a possible delimiter is held back."""
        if self._done:
            return ""
        text = self._held + piece
        found = _MARK.search(text)
        if found:
            self._done = True
            self._held = ""
            return text[: found.start()]
        keep = 0
        for length in range(1, min(_LONGEST, len(text)) + 1):
            tail = text[-length:]
            if VOICE.startswith(tail) or TWIN.startswith(tail):
                keep = length
        self._held = text[len(text) - keep :] if keep else ""
        return text[: len(text) - keep] if keep else text

    def finish(self) -> str:
        """What was held back and turned out to be plain text."""
        rest, self._held = self._held, ""
        return "" if self._done else rest


def _join(parts: list[str]) -> str:
    return "\n".join(part for part in parts if part)


def _unwrap(text: str, tag: str) -> str:
    opening, closing = f"<{tag}>", f"</{tag}>"
    if text.startswith(opening) and text.endswith(closing) and len(text) >= len(opening) + len(closing):
        return text[len(opening) : -len(closing)].strip()
    return text
