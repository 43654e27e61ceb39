"""Files without a name, to hand memory from one process to another by descriptor."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path


def anonymous_file(contents: bytes) -> int:
    """A descriptor of a file that holds ``contents`` and vanishes with its last descriptor."""
    if sys.platform == "linux":
        fd = os.memfd_create("rappd", os.MFD_CLOEXEC)
    else:
        fd, path = tempfile.mkstemp(prefix="rappd")
        Path(path).unlink()
    left = memoryview(contents)
    while left:
        left = left[os.write(fd, left) :]
    return fd
