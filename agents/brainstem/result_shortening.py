"""Results of agents at a length that a model can read."""

from __future__ import annotations

_END_SHARE = 4
"""The end of a long result keeps one part in this many: errors and sums stand there."""


def shortened(text: str, most: int) -> str:
    """The beginning and the end of a text, with the number of characters left out between; ``text`` up to ``most``."""
    if len(text) <= most:
        return text
    end = most // _END_SHARE
    begin = most - end
    return f"{text[:begin]}\n[… {len(text) - begin - end} characters left out …]\n{text[len(text) - end :]}"
