"""One read of a small file in a workspace: plain, and beneath the root without following links."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from agents.storage.safe_fs import SafeTree

_CALLS = 3000
_ROUNDS = 7


def run() -> list[tuple[str, str]]:
    """Microseconds of a read at the root, and three folders down; the best of some rounds."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        tree = SafeTree(folder)
        for name in ("soul.md", ".brainstem_data/kept/good/file"):
            tree.write_unsynced(name, b"x" * 2000)
            path = Path(folder, name)
            plain, safe = _best(path.read_bytes), _best(partial(tree.read, path))
            rows.append((name, f"{plain:.1f} µs plain, {safe:.1f} µs beneath the root"))
    return rows


def _best(read: Callable[[], bytes]) -> float:
    seconds = []
    for _ in range(_ROUNDS):
        began = time.perf_counter()
        for _ in range(_CALLS):
            read()
        seconds.append(time.perf_counter() - began)
    return min(seconds) / _CALLS * 1e6
