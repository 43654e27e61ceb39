"""Results of agents at a length that a model can read, and that the record keeps."""

from __future__ import annotations

import asyncio
import hashlib
from typing import Any

_END_SHARE = 4
"""The end of a long result keeps one part in this many: errors and sums stand there."""


def shortened(text: str, most: int) -> str:
    """The beginning and the end of a text, with the number of characters left out between; ``text`` up to ``most``."""
    if len(text) <= most:
        return text
    end = most // _END_SHARE
    begin = most - end
    return f"{text[:begin]}\n[… {len(text) - begin - end} characters left out …]\n{text[len(text) - end :]}"


async def recorded(result: str, most: int) -> dict[str, Any]:
    """A result as the record holds it: ``{result}``, or the shortened one with ``whole: {characters, sha256}``.

    ``sha256`` is that of the whole text in UTF-8.
    """
    if len(result) <= most:
        return {"result": result}
    digest = await asyncio.to_thread(lambda: hashlib.sha256(result.encode()).hexdigest())
    return {"result": shortened(result, most), "whole": {"characters": len(result), "sha256": digest}}
