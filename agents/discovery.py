"""Finding agent files in a folder, by file name alone (RAPP v1 §5.7)."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SKIPPED_FOLDERS = frozenset({"experimental_agents", "disabled_agents", "__pycache__"})
SUFFIX = "_agent.py"
LISPY = ".lispy"
CARTRIDGE = ".lispy.json"
BASE = "basic_agent.py"
SERVICE_SUFFIXES = ("_service.py", "_organ.py")

Stamp = tuple[int, int, int]
"""(modified in ns, size in bytes, inode): two equal stamps mean the same version of a file."""


@dataclass(slots=True, frozen=True)
class AgentFile:
    """One agent file: ``rel`` is its path below the agents folder, with ``/`` between segments."""

    rel: str
    path: Path
    stamp: Stamp


def find_agent_files(agents_dir: Path) -> list[AgentFile]:
    """Every ``**/*_agent.py``, ``**/*.lispy`` and ``**/*.lispy.json``, workshops under ``workspace_agents/``
    included, bytewise by ``rel``.

    Left out: ``basic_agent.py``, whatever lies below ``experimental_agents``, ``disabled_agents``,
    ``__pycache__`` or a name that starts with a dot, and symbolic links that leave the folder.
    A folder that is missing or unreadable holds no files.
    """
    return _find(agents_dir, (SUFFIX, LISPY, CARTRIDGE))


def find_service_files(services_dir: Path) -> list[AgentFile]:
    """Every ``*_service.py`` and ``*_organ.py``, under the same rules (RAPP v1 §18.8)."""
    return _find(services_dir, SERVICE_SUFFIXES)


def find_sense_files(senses_dir: Path) -> list[AgentFile]:
    """Every ``*_sense.py``, under the same rules."""
    return _find(senses_dir, ("_sense.py",))


def stamp_of(status: os.stat_result) -> Stamp:
    """The stamp of a file, from its ``stat``."""
    return status.st_mtime_ns, status.st_size, status.st_ino


def _find(folder: Path, suffixes: tuple[str, ...]) -> list[AgentFile]:
    root = os.path.realpath(folder)
    found = list(_walk(str(folder), "", root, suffixes))
    found.sort(key=lambda file: os.fsencode(file.rel))
    return found


def _walk(folder: str, prefix: str, root: str, suffixes: tuple[str, ...]) -> Iterator[AgentFile]:
    try:
        entries = os.scandir(folder)
    except OSError:
        return
    with entries:
        for entry in entries:
            name = entry.name
            if name.startswith(".") or name in SKIPPED_FOLDERS:
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    yield from _walk(entry.path, f"{prefix}{name}/", root, suffixes)
                elif name.endswith(suffixes) and name != BASE and _is_own_file(entry, root):
                    yield AgentFile(prefix + name, Path(entry.path), stamp_of(entry.stat()))
            except OSError:  # it went away, or is a link to nothing
                continue


def _is_own_file(entry: os.DirEntry[str], root: str) -> bool:
    if not entry.is_file():
        return False
    return not entry.is_symlink() or os.path.realpath(entry.path).startswith(root + os.sep)
