"""The twins that start with the daemon, and their ports: ``ports/<key>.port``, written while they run."""

from __future__ import annotations

from pathlib import Path

from agents.storage.atomic_write import write_atomically
from rappd.daemon.home import Home


class AutostartRegistry:
    """The files of one home. Every method blocks; a twin without a file sleeps until it is booted."""

    def __init__(self, home: Home) -> None:
        self._folder = home.root / "ports"

    def remember(self, key: str, port: int) -> None:
        """Has the twin booted at the next start, on that port if it is free then."""
        write_atomically(self._file(key), f"{port}\n".encode())

    def forget(self, key: str) -> None:
        """Leaves the twin stopped at the next start."""
        self._file(key).unlink(missing_ok=True)

    def all(self) -> dict[str, int]:
        """The port of each, 0 where what is written is none."""
        found = {}
        for path in sorted(self._folder.glob("*.port")):
            text = path.read_text(errors="replace").strip()
            found[path.stem] = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else 0
        return found

    def _file(self, key: str) -> Path:
        return self._folder / f"{key}.port"
