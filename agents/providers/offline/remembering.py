"""Sentences that ask to remember something: "remember that x", "please remember: x", "don't forget that x"."""

from __future__ import annotations

import re
from typing import Any

KEEPING = "ManageMemory"
"""The agent; ``memory_type`` and ``content`` are its parameters."""

_LONGEST = 4000
_POLITE = (
    r"(?:(?:please|hey|hi|ok|okay|now|so|and|also|oh|(?:can|could|would|will) you(?: please)?|i(?:'d| would) like you to"
    r"|i want you to|you (?:should|must|have to|need to))[\s,]+)*"
)
_FOR_ME = r"(?:\s+(?:this|the following|it|for me|for later|down|in mind))*"
_MARK = r"\s*[:,–—-]\s*"
_ORDERS = re.compile(
    rf"\s*{_POLITE}(?:remember|memori[sz]e|(?:don't|dont|do not|never) forget)"
    rf"(?:{_FOR_ME}{_MARK}(?:that\s+)?|\s+(?:the\s+fact\s+)?that\s+)(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_NOTES = re.compile(
    rf"\s*{_POLITE}(?:(?:note|save|store|record|write)|(?:keep|bear) in mind|(?:make|take) (?:a )?note(?: of)?|for the record)"
    rf"(?:{_FOR_ME}{_MARK}(?:that\s+)?|{_FOR_ME}\s+(?:the\s+fact\s+)?that\s+)(?P<what>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_ASKED = re.compile(rf"\s*{_POLITE}(?<=you )", re.IGNORECASE)
_FEELS = re.compile(
    r"(?:i|we|he|she|they|my \w+|[A-Z]\w+)\s+(?:\w+ly\s+)?(?:prefers?|likes?|loves?|hates?|dislikes?|enjoys?)\b"
    r"|my favou?rite\b",
    re.IGNORECASE,
)


def remembered_fact(text: str) -> tuple[dict[str, Any], bool] | None:
    """The arguments that keep what is said, and True where the sentence plainly asks for it; None for any other.

    "note that x" is not plain: an agent that keeps notes comes first. What is remembered is a fact, whatever words
    it holds, but for what somebody likes.
    """
    if len(text) > _LONGEST:
        return None
    text = text.replace("’", "'")
    plain = _ORDERS.fullmatch(text)
    found = plain or _NOTES.fullmatch(text)
    if found is None:
        return None
    what = found["what"].strip()
    what = what.rstrip("?").rstrip() if _ASKED.match(text) else what
    if what.count(".") == 1:  # one sentence is kept without its full stop, as other arguments are read
        what = what.removesuffix(".")
    kind = "preference" if _FEELS.match(what) else "fact"
    return {"memory_type": kind, "content": what}, plain is not None
