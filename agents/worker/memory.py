"""Files without a name, to hand memory from one process to another by descriptor."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def anonymous_file(contents: bytes) -> int:
    """A descriptor of a file that holds ``contents`` and vanishes with its last descriptor."""
    if sys.platform == "linux":
        fd = os.memfd_create("rappd", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    else:
        fd, path = tempfile.mkstemp(prefix="rappd")
        Path(path).unlink()
    left = memoryview(contents)
    while left:
        left = left[os.write(fd, left) :]
    return fd


def fix_size(fd: int) -> None:
    """Forbid any change of the file's size: who maps a file that was cut short crashes. (Linux only.)"""
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
