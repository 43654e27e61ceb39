"""The egg that a code file came from, told from the receipts: approving a file does not change its origin."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson

from twins.installer.receipts import Receipts

_DIGITS = 12
Stamp = tuple[int, int]


class CodeOrigins:
    """Tells files of different origin apart, so that they never share a worker process.

    A file whose content an egg brought is of that egg, wherever it lies. At a path that an egg wrote, other
    content is of an origin of its own: mostly it is the egg's code with a change. Blocks on the disk.
    """

    def __init__(self, home: Path) -> None:
        self._home = Path(os.path.realpath(home))
        self._folder = Receipts(home).folder
        self._read: dict[str, tuple[Stamp, list[tuple[str, str, str]]]] = {}
        self._by_content: dict[str, str] = {}
        self._by_path: dict[str, str] = {}
        self._lock = threading.Lock()

    def look(self) -> object:
        """Read receipts that are new or changed; another object when there were any. Thread-safe."""
        with self._lock:
            return self._look()

    def _look(self) -> object:
        found = _stamps(self._folder)
        if found.keys() == self._read.keys() and all(self._read[one][0] == found[one] for one in found):
            return self._by_content
        for name, stamp in found.items():
            if name not in self._read or self._read[name][0] != stamp:
                self._read[name] = (stamp, self._files_of(self._folder / name))
        self._read = {name: self._read[name] for name in sorted(found)}
        rows = [row for _, rows in self._read.values() for row in rows]
        self._by_path = {path: egg for egg, path, _ in rows}
        self._by_content = {sha256: egg for egg, _, sha256 in rows}
        return self._by_content

    def egg_of(self, path: Path, sha256: str) -> str:
        """``egg:<hash>``, with a suffix for changed content; "" for what no egg brought."""
        egg = self._by_content.get(sha256)
        if egg is not None:
            return egg
        real = os.path.realpath(path)
        egg = self._by_path.get(real)
        return f"{egg}:{os.path.relpath(real, self._home)}" if egg is not None else ""

    def _files_of(self, receipt: Path) -> list[tuple[str, str, str]]:
        """(egg, path, sha256) of the code that one hatching wrote."""
        try:
            found: Mapping[str, Any] = orjson.loads(receipt.read_bytes())
            egg = f"egg:{found['sha256'][:_DIGITS]}"
            root = Path(self._home, found["workspace"])
            files = [row for row in found["files"] if str(row["path"]).endswith(".py")]
            return [
                (egg, os.path.realpath(row.get("moved_to") or root / row["path"]), row["sha256"])
                for row in files
            ]
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return []  # a damaged receipt is told by what needs it whole


def _stamps(folder: Path) -> dict[str, Stamp]:
    found = {}
    try:
        for entry in os.scandir(folder):
            if entry.name.endswith(".json") and not entry.name.endswith(".frames.json"):
                status = entry.stat(follow_symlinks=False)
                found[entry.name] = (status.st_mtime_ns, status.st_ino)
    except FileNotFoundError:
        return {}
    return found
