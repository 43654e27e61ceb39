"""Slots of an answer: ``|||VOICE|||``, ``|||TWIN|||`` and those of senses, in any order, never leaked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

VOICE = "|||VOICE|||"
TWIN = "|||TWIN|||"
DELIMITER = re.compile(r"\|\|\|[A-Za-z0-9_.-]{1,40}\|\|\|")
"""The form of every delimiter. None is a part of another, so that no two claim the same text."""


class Slot(msgspec.Struct, frozen=True):
    """One further answer beside the main one, under ``response_key`` in ``/chat``.

    ``prompt`` tells the model how to fill it; ``tag`` may wrap the whole of it.
    """

    name: str
    delimiter: str
    response_key: str
    prompt: str = ""
    tag: str = ""


SOUL_SLOTS = (
    Slot("voice", VOICE, "voice_response", tag="voice"),
    Slot("twin", TWIN, "twin_response", tag="twin"),
)
"""The slots that are always split off, and asked for where their mode is on."""


class Slots(NamedTuple):
    """An answer taken apart; a slot that was not there is "". ``senses`` has every sense's, by its key."""

    main: str
    voice: str
    twin: str
    senses: dict[str, str]


class Delimiters:
    """Delimiters at which an answer is cut: the two published ones and those of ``senses``."""

    def __init__(self, senses: Sequence[Slot] = ()) -> None:
        self._slots = {slot.delimiter: slot for slot in (*SOUL_SLOTS, *senses)}
        self._senses = [slot for slot in senses if slot.delimiter not in (VOICE, TWIN)]
        self.mark = re.compile(f"({'|'.join(map(re.escape, self._slots))})")
        self.starts = frozenset(
            delimiter[:length] for delimiter in self._slots for length in range(1, len(delimiter))
        )
        self.longest_start = max(map(len, self.starts))

    def split(self, text: str) -> Slots:
        """Cuts ``text`` at every delimiter. A slot runs to the next one; a repeated slot is joined."""
        if "|||" not in text:
            return Slots(text.strip(), "", "", {slot.response_key: "" for slot in self._senses})
        pieces = self.mark.split(text)
        bodies: dict[str, list[str]] = {delimiter: [] for delimiter in self._slots}
        for delimiter, body in zip(pieces[1::2], pieces[2::2], strict=True):
            bodies[delimiter].append(body.strip())

        def filled(slot: Slot) -> str:
            return _unwrap("\n".join(part for part in bodies[slot.delimiter] if part), slot.tag)

        senses = {slot.response_key: filled(slot) for slot in self._senses}
        main = _unwrap(pieces[0].strip(), "main")
        return Slots(main, filled(self._slots[VOICE]), filled(self._slots[TWIN]), senses)


PLAIN = Delimiters()
"""A workspace without senses."""


class MainStream:
    """Lets through only the main part of a text that arrives in pieces."""

    def __init__(self, delimiters: Delimiters = PLAIN) -> None:
        self._delimiters = delimiters
        self._held = ""
        self._done = False

    def feed(self, piece: str) -> str:
        """Returns the text that may be shown now; the start of a possible delimiter is held back."""
        if self._done:
            return ""
        text = self._held + piece
        found = self._delimiters.mark.search(text)
        if found:
            self._done = True
            self._held = ""
            return text[: found.start()]
        for length in range(min(self._delimiters.longest_start, len(text)), 0, -1):
            if text[-length:] in self._delimiters.starts:
                self._held = text[-length:]
                return text[:-length]
        self._held = ""
        return text

    def finish(self) -> str:
        """Returns text that was held back and turned out to be plain text."""
        rest, self._held = self._held, ""
        return "" if self._done else rest


def _unwrap(text: str, tag: str) -> str:
    opening, closing = f"<{tag}>", f"</{tag}>"
    if (
        tag
        and text.startswith(opening)
        and text.endswith(closing)
        and len(text) >= len(opening) + len(closing)
    ):
        return text[len(opening) : -len(closing)].strip()
    return text
