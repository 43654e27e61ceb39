"""Text that comes in pieces: made valid Unicode, and kept apart into an answer and a model's thoughts."""

from __future__ import annotations

_SHORT = 12
"""Characters: a beginning shorter than this may be repeated by chance ("ha", "haha"), so a third piece decides."""
_LONG_REPEAT = 8
"""Characters of an answer that its last piece may repeat whole."""
_OPENINGS = ("<think>", "<thinking>", "<thought>", "[THINK]")
_MOST_TEXT = 4 << 20
"""Characters of one answer; more than a million tokens."""


def valid_text(text: str) -> str:
    """The same text with pairs of half characters joined and single halves replaced by U+FFFD."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


class TextPieces:
    """Joins the pieces of one text. ``feed`` returns what is new in valid Unicode, ``finish`` what was held back.

    A server whose every piece repeats all of the text so far is recognised by its second piece, or by its third where
    the first is short. ``text`` is all that was returned.
    """

    def __init__(self) -> None:
        self._given: list[str] = []
        self._size = 0
        self._pieces = 0
        self._begin = ""
        self._repeats: bool | None = None
        self._undecided = ""
        self._half = ""

    @property
    def text(self) -> str:
        if len(self._given) > 1:
            self._given = ["".join(self._given)]
        return self._given[0] if self._given else ""

    @property
    def full(self) -> bool:
        """True once so much came that the rest is dropped."""
        return self._size >= _MOST_TEXT

    def feed(self, piece: str, *, last: bool = False) -> str:
        """The new text in ``piece``; ``last``: the server says that it is the last one."""
        if not piece or self.full:
            return ""
        self._pieces += 1
        if self._pieces == 1:
            self._begin = piece
            return self._give(piece)
        if self._pieces == 2:
            return self._second(piece, last)
        if self._undecided:
            return self._third(piece)
        if self._repeats:
            return self._give(self._new_in(piece))
        if last and len(piece) == self._size >= _LONG_REPEAT and piece == self.text:
            return ""
        return self._give(piece)

    def finish(self) -> str:
        """The rest that was held back: a piece that nothing decided on, half a character."""
        rest = ""
        if self._undecided:
            begin, piece = self._begin, self._undecided
            self._undecided = ""
            rest = self._give(piece[len(begin) :] if len(begin) > 2 else piece)
        if self._half:
            self._half = ""
            rest += self._take("\ufffd")
        return rest

    def _second(self, piece: str, last: bool) -> str:
        longer = len(piece) > len(self._begin) and piece.startswith(self._begin)
        if longer and len(self._begin) >= _SHORT:
            self._repeats = True
            return self._give(piece[len(self._begin) :])
        if longer:
            self._undecided = piece
            return ""
        if last and len(piece) >= _LONG_REPEAT and piece == self._begin:
            return ""
        return self._give(piece)

    def _third(self, piece: str) -> str:
        second, self._undecided = self._undecided, ""
        if piece.startswith(second):
            self._repeats = True
            return self._give(piece[len(self._begin) :])
        return self._give(second + piece)

    def _new_in(self, piece: str) -> str:
        whole = self.text + self._half
        if piece.startswith(whole):
            return piece[len(whole) :]
        return "" if whole.startswith(piece) else piece

    def _give(self, piece: str) -> str:
        text = self._half + piece
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            text, self._half = text[:-1], text[-1]
        return self._take(valid_text(text))

    def _take(self, text: str) -> str:
        text = text[: _MOST_TEXT - self._size]
        if text:
            self._given.append(text)
            self._size += len(text)
        return text


class ThoughtSplitter:
    """Splits a leading ``<think>…</think>`` off a text, whatever its pieces; one that is never closed is all thought."""

    def __init__(self) -> None:
        self._pending = ""
        self._closing = ""
        self._decided = False
        self._trim = False

    def feed(self, piece: str) -> tuple[str, str]:
        """The thought and the answer in ``piece``."""
        if self._decided and not self._closing:
            return "", self._answer(piece)
        self._pending += piece
        if not self._decided and not self._decide():
            return "", ""
        if not self._closing:
            pending, self._pending = self._pending, ""
            return "", pending
        thought, found, rest = self._pending.partition(self._closing)
        if found:
            self._pending, self._closing, self._trim = "", "", True
            return thought, self._answer(rest)
        keep = _begun(self._pending, self._closing)
        thought, self._pending = (
            self._pending[: len(self._pending) - keep],
            self._pending[len(self._pending) - keep :],
        )
        return thought, ""

    def finish(self) -> tuple[str, str]:
        """The thought and the answer that were held back."""
        pending, self._pending = self._pending, ""
        return (pending, "") if self._closing else ("", pending)

    def _decide(self) -> bool:
        """Looks if the text begins with a thought; False while too little of it is there."""
        text = self._pending.lstrip()
        for opening in _OPENINGS:
            if text.startswith(opening):
                self._closing = opening.replace("<", "</").replace("[", "[/")
                self._pending = text[len(opening) :]
                self._decided = True
                return True
        if any(opening.startswith(text) for opening in _OPENINGS):
            return False
        self._decided = True
        return True

    def _answer(self, piece: str) -> str:
        """Takes the blank lines off that models put between thought and answer."""
        if not self._trim:
            return piece
        piece = piece.lstrip()
        self._trim = not piece
        return piece


def _begun(text: str, mark: str) -> int:
    """Length of the end of ``text`` with which ``mark`` may begin."""
    for length in range(min(len(mark) - 1, len(text)), 0, -1):
        if mark.startswith(text[-length:]):
            return length
    return 0
