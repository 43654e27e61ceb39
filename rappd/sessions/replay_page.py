"""The page that travels in session eggs: one HTML file that replays a transcript and loads nothing."""

from __future__ import annotations

import functools
from pathlib import Path

_FOLDER = Path(__file__).parent / "replay"


@functools.cache
def replay_page() -> str:
    """The page, its style and its script within."""
    page, style, script = (
        (_FOLDER / name).read_text("utf-8") for name in ("index.html", "replay.css", "replay.js")
    )
    return page.replace("/*STYLE*/", style.strip()).replace("/*SCRIPT*/", script.strip())
