"""Events of the kernel about names that were moved or removed (inotify)."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

_MOVED_FROM, _MOVED_TO, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x40, 0x80, 0x200, 0x400, 0x800
_ONLY_FOLDERS = 0x0100_0000
_WANTED = _MOVED_FROM | _MOVED_TO | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS
_BYTES = 64 * 1024

_libc = ctypes.CDLL(None, use_errno=True)


class FileEvents:
    """Folders in which names are watched. Where the system has no more watches, ``fd`` tells less."""

    def __init__(self) -> None:
        started = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.fd: int | None = started if started >= 0 else None

    def watch(self, folders: Iterable[str]) -> None:
        """Tell of names in these folders too. A folder that is watched already stays so."""
        if self.fd is not None:
            for folder in dict.fromkeys(folders):
                _libc.inotify_add_watch(self.fd, os.fsencode(folder), _WANTED)

    def clear(self) -> None:
        """Take in what was told."""
        if self.fd is not None:
            try:
                while os.read(self.fd, _BYTES):
                    pass
            except BlockingIOError:
                return
