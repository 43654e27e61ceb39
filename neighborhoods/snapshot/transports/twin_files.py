"""The files of one twin as a walk tells them: how many, how large, and the fingerprint of their state."""

from __future__ import annotations

import hashlib
import re

PRUNED = frozenset({"__pycache__", ".git", "node_modules", ".venv"})
"""Folders whose files are neither counted nor sent: they are made anew where they are needed."""
_LINE = re.compile(
    rb"(?P<first>[0-9]++) (?P<rest>[0-9.]++ [0-9.]++|[0-9]++) \./(?P<path>.+)", re.DOTALL
).fullmatch
_MOST_DIGITS = 18
"""Of a size: the largest disks have 16, and what is longer than 4,300 is no number to ``int``."""
_MODULUS = 1 << 256
_MOST_OCTETS = 1 << 62  # what is written as JSON ends at 64 bits
_MOST_AGENTS = 1000
_MOST_NAMES_BYTES = 64 << 20
_AGENT = re.compile(rb"agents/[^/.][^/]*_agent\.(?:py|lispy)")


class TwinFiles:
    """Takes lines in any order; ``by_content`` says that a line is ``CHECKSUM SIZE ./PATH``, else ``SIZE TIMES ./PATH``.

    Of the lines nothing is kept but sums, and with ``keeps_names`` the paths. Lines of another form, the rest of a name
    with a line end in it, count for the fingerprint alone.
    """

    def __init__(self, *, by_content: bool = False, keeps_names: bool = False) -> None:
        self._by_content, self._keeps_names = by_content, keeps_names
        self.names: list[bytes] = []
        """Paths as they are spelled there, up to a line end; none where they are too many."""
        self._names_bytes = 0
        self._sum = 0
        self.files = 0
        self.bytes = 0
        self.has_soul = False
        self.problem = ""
        """The reason why no file of this twin can be believed; "" for none."""
        self._agents: list[str] = []

    def take(self, line: bytes) -> None:
        """Takes one line, without its end."""
        if not line:
            return
        self._sum = (self._sum + int.from_bytes(hashlib.sha256(line).digest())) % _MODULUS
        found = _LINE(line)
        if found is None:
            return
        self._keep(found["path"])
        size = found["rest"] if self._by_content else found["first"]
        if not size.isdigit():
            return
        if len(size) > _MOST_DIGITS:
            self.problem = "it lists a file of a size that no disk has"
            return
        self.files += 1
        self.bytes = min(self.bytes + int(size), _MOST_OCTETS)
        path = found["path"]
        if path == b"soul.md":
            self.has_soul = True
        elif _AGENT.fullmatch(path) and len(self._agents) < _MOST_AGENTS:
            self._agents.append(path[7:].decode("utf-8", "backslashreplace"))

    def _keep(self, path: bytes) -> None:
        if not self._keeps_names:
            return
        self._names_bytes += len(path)
        if self._names_bytes > _MOST_NAMES_BYTES:
            self._keeps_names = False
            self.names.clear()
        else:
            self.names.append(path)

    @property
    def agents(self) -> tuple[str, ...]:
        """The agent files by name."""
        return tuple(sorted(self._agents))

    @property
    def fingerprint(self) -> str:
        """Changes with any name, size or time of a file; not with the order of the lines."""
        return f"{self._sum:064x}-{self.files:x}"
