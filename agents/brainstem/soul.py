"""The soul: one Markdown file that says who the brainstem is (RAPP v1 §7)."""

from __future__ import annotations

import logging
from pathlib import Path

from agents.storage.file_pool import in_file_pool
from agents.storage.safe_fs import SafeTree

log = logging.getLogger(__name__)

FALLBACK = "You are a helpful AI assistant."
MAX_BYTES = 16 << 20


class Soul:
    """The soul's text, read again whenever its file changed."""

    def __init__(self, path: Path, files: SafeTree | None = None) -> None:
        """``files``: the tree that ``path`` is in."""
        self.path = path
        self._files = files or SafeTree(path.parent)
        self._where = path if files else path.name
        self._stamp: tuple[int, int, int] | None = None
        self._text = FALLBACK
        self._problem = ""

    async def text(self) -> str:
        """The text in force. A missing or unreadable file, or a link, gives the fallback, and is tried again."""
        return await in_file_pool(self._read)

    def _read(self) -> str:
        try:
            found = self._files.stat_file(self._where)
            stamp = (found.st_mtime_ns, found.st_size, found.st_ino)
            if stamp != self._stamp:
                content = self._files.read(self._where, MAX_BYTES)
                text = content.decode("utf-8", "replace")
                self._text = text.replace("\r\n", "\n").replace("\r", "\n")
                self._stamp = stamp
            self._problem = ""
        except FileNotFoundError:
            self._stamp = None
            return FALLBACK
        except OSError as error:
            self._stamp = None
            if str(error) != self._problem:
                self._problem = str(error)
                log.warning("the soul is not used: %s", error)
            return FALLBACK
        return self._text
