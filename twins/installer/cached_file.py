"""A small file kept in memory, read anew when it changed on disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

Content = TypeVar("Content")


class CachedFile(Generic[Content]):
    """One file that is only ever replaced as a whole. Asking costs one ``stat``."""

    def __init__(
        self, path: Path, decode: Callable[[bytes], Content], without: Callable[[], Content]
    ) -> None:
        """``without()`` stands for a file that is not there."""
        self._path = path
        self._decode = decode
        self._without = without
        self._loaded: tuple[tuple[int, int, int] | None, Content] | None = None

    def content(self) -> Content:
        """The file's content now. Raises what ``decode`` raises; then nothing older is given out."""
        try:
            stamp: tuple[int, int, int] | None = _stamp(self._path.stat())
        except FileNotFoundError:
            stamp = None
        loaded = self._loaded
        if loaded is not None and loaded[0] == stamp:
            return loaded[1]
        if stamp is None:
            self._loaded = (None, self._without())
        else:
            with self._path.open("rb") as file:
                stamp = _stamp(os.fstat(file.fileno()))
                self._loaded = (stamp, self._decode(file.read()))
        return self._loaded[1]

    def forget(self) -> None:
        """Reads anew when next asked: after writing the file oneself, whose stamp may look like the old one."""
        self._loaded = None


def _stamp(found: os.stat_result) -> tuple[int, int, int]:
    return found.st_mtime_ns, found.st_size, found.st_ino
