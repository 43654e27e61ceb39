"""Modules of a workspace that an agent file imports, read from its text without running it.

Code that declares its needs sees no other file of its workspace than itself and these.
"""

from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from agents.contract.syntax import syntax_tree
from agents.storage.safe_fs import SafeTree

_MOST = 64
_AGENTS, _UTILS = "agents", "utils"


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Places of a workspace that agent files import from: ``agents``, and the ``utils`` folders that stand for ``utils``."""

    files: SafeTree
    agents: Path
    utils: Sequence[Path]

    def imported_by(self, rel: str, content: bytes) -> tuple[str, ...]:
        """The files and folders of modules that a file imports by statements, and that these import, sorted.

        ``rel`` is its path below the agents folder. Blocks on the disk.
        """
        found: set[str] = set()
        ahead = [(_package(rel), content)]
        while ahead and len(found) < _MOST:
            package, content = ahead.pop()
            for name in _imported(content, package):
                for place in self._places(name):
                    ahead += [(name, text) for text in self._found_at(place, found)]
        return tuple(sorted(found))

    def _places(self, name: str) -> Iterator[Path]:
        """The paths without ending at which a module may lie, and the packages above it."""
        parts = name.split(".")
        folders: Sequence[Path] = [self.agents]
        if parts[0] == _UTILS:
            folders, parts = self.utils, parts[1:]
        elif parts[0] == _AGENTS:
            parts = parts[1:]
        if parts:
            yield from (folder / parts[0] for folder in folders)

    def _found_at(self, place: Path, found: set[str]) -> Iterator[bytes]:
        """Add what lies at ``place`` to ``found``; yields the texts in it that may import more."""
        file = place.with_name(f"{place.name}.py")
        for path in (place, file):
            if str(path) in found:
                return
        with contextlib.suppress(OSError):
            if self.files.is_file(file):
                found.add(str(file))
                yield self.files.read(file)
                return
            modules = [name for name in self.files.names(place) if name.endswith(".py")]
            if modules:
                found.add(str(place))
            for name in modules:
                yield self.files.read(place / name)


def _package(rel: str) -> str:
    return ".".join((_AGENTS, *rel.split("/")[:-1]))


def _imported(content: bytes, package: str) -> Iterator[str]:
    """The whole names of modules, and of what may be one, in import statements."""
    try:
        nodes = list(ast.walk(syntax_tree(content)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            start = ".".join(filter(None, (*above, node.module)))
            if start in (_AGENTS, _UTILS):
                yield from (f"{start}.{one.name}" for one in node.names)
            elif start:
                yield start
