"""The soul: one Markdown file that says who the brainstem is (RAPP v1 §7)."""

from __future__ import annotations

import asyncio
from pathlib import Path

FALLBACK = "You are a helpful AI assistant."


class Soul:
    """The soul's text, read again whenever its file changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stamp: tuple[int, int] | None = None
        self._text = FALLBACK

    async def text(self) -> str:
        """The text in force. A missing or unreadable file gives the fallback, and is tried again."""
        return await asyncio.to_thread(self._read)

    def _read(self) -> str:
        try:
            found = self.path.stat()
            stamp = (found.st_mtime_ns, found.st_size)
            if stamp != self._stamp:
                self._text = self.path.read_text(encoding="utf-8", errors="replace")
                self._stamp = stamp
        except OSError:
            self._stamp = None
            return FALLBACK
        return self._text
