"""Finding agent files in a folder, by file name alone (RAPP v1 §5.7)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agents.storage.safe_fs import SafeTree

SKIPPED_FOLDERS = frozenset({"experimental_agents", "disabled_agents", "__pycache__"})
SUFFIX = "_agent.py"
LISTENER_SUFFIX = "_listener.py"
AGENT_SUFFIXES = (SUFFIX, LISTENER_SUFFIX)
"""Endings of files that are agents or listeners, in Python."""
LISPY = ".lispy"
CARTRIDGE = ".lispy.json"
BASE = "basic_agent.py"
OWN_PACKAGES = frozenset({"agents", "basic_agent", "local_storage", "openrappter", "skills", "utils"})
"""Names that agent files import from the daemon itself; no package of that name is ever installed."""
SERVICE_SUFFIXES = ("_service.py", "_organ.py")
SENSE_SUFFIX = "_sense.py"

Stamp = tuple[int, int, int]
"""(modified in ns, size in bytes, inode): two equal stamps mean the same version of a file."""


@dataclass(slots=True, frozen=True)
class AgentFile:
    """One agent file: ``rel`` is its path below the agents folder, with ``/`` between segments.

    ``files``: the tree that it is read in; None for a file of the program itself.
    """

    rel: str
    path: Path
    stamp: Stamp
    files: SafeTree | None = field(default=None, compare=False, repr=False)

    def content(self) -> bytes:
        """The file's bytes now. Raises ``OSError``, ``UnsafeFileError`` for what became a link."""
        return self.path.read_bytes() if self.files is None else self.files.read(self.path)


def find_agent_files(agents_dir: Path, files: SafeTree | None = None) -> list[AgentFile]:
    """Every ``**/*_agent.py``, ``**/*_listener.py``, ``**/*.lispy`` and ``**/*.lispy.json``, bytewise by ``rel``.

    Workshops under ``workspace_agents/`` are included.

    Left out: ``basic_agent.py``, whatever lies below ``experimental_agents``, ``disabled_agents``,
    ``__pycache__`` or a name that starts with a dot, symbolic links, and what is no regular file.
    A folder that is missing or unreadable holds no files. ``files`` is the tree that the folder is in: no
    folder on the way may be a link either.
    """
    return _find(agents_dir, (*AGENT_SUFFIXES, LISPY, CARTRIDGE), files)


def find_service_files(services_dir: Path, files: SafeTree | None = None) -> list[AgentFile]:
    """Every ``*_service.py`` and ``*_organ.py``, under the same rules (RAPP v1 §18.8)."""
    return _find(services_dir, SERVICE_SUFFIXES, files)


def find_sense_files(senses_dir: Path, files: SafeTree | None = None) -> list[AgentFile]:
    """Every ``*_sense.py``, under the same rules."""
    return _find(senses_dir, (SENSE_SUFFIX,), files)


def find_shipped_files(library: Path) -> list[AgentFile]:
    """The agent files of the program itself; links are followed, as installers lay them."""
    found = list(_walk_shipped(str(library), ""))
    found.sort(key=lambda file: os.fsencode(file.rel))
    return found


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a file, from its ``stat``."""
    return status.st_mtime_ns, status.st_size, status.st_ino


def _find(folder: Path, suffixes: tuple[str, ...], files: SafeTree | None) -> list[AgentFile]:
    tree = files or SafeTree(folder)
    listed = tree.files(
        folder if files else (),
        wants=lambda name: name.endswith(suffixes) and name != BASE and not name.startswith("."),
        enters=is_entered,
    )
    found = [AgentFile(rel, folder / rel, stamp_of(status), tree) for rel, status in listed]
    found.sort(key=lambda file: os.fsencode(file.rel))
    return found


def is_entered(name: str) -> bool:
    """True for the name of a folder in which files are looked for."""
    return not name.startswith(".") and name not in SKIPPED_FOLDERS


def _walk_shipped(folder: str, prefix: str) -> Iterator[AgentFile]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if not is_entered(entry.name):
                continue
            if entry.is_dir():
                yield from _walk_shipped(entry.path, f"{prefix}{entry.name}/")
            elif entry.name.endswith((*AGENT_SUFFIXES, LISPY, CARTRIDGE)) and entry.name != BASE:
                yield AgentFile(prefix + entry.name, Path(entry.path), stamp_of(entry.stat()))
