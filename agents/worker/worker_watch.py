"""Watch over running workers, by the process that forks them: memory, and read-only paths replaced."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.worker.cgroup_limit import MemoryGroups
from agents.worker.file_events import FileEvents
from agents.worker.memory_use import memory_of

SECONDS = 0.25
"""Between two looks at every worker."""

Identity = tuple[int, int] | None


@dataclass(slots=True)
class _Watched:
    memory: int
    identities: dict[str, Identity] = field(default_factory=dict)


class WorkerWatch:
    """Tells which workers have to be ended, and why.

    A read-only path of a mount namespace is a mount on one file or folder. Whoever replaces that outside,
    an editor for example, takes the mount away from workers that run already: they are ended at once.
    """

    def __init__(self, groups: MemoryGroups | None, *, mounts: bool) -> None:
        self._groups = groups
        self._events = FileEvents() if mounts else None
        self._workers: dict[int, _Watched] = {}

    @property
    def fd(self) -> int | None:
        """Readable when a read-only path may have been replaced."""
        return self._events.fd if self._events is not None else None

    @property
    def timeout(self) -> int | None:
        """Milliseconds until ``look`` is due; None while no worker runs."""
        return int(SECONDS * 1000) if self._workers else None

    def prepare(self, plan: dict[str, Any]) -> dict[str, Identity]:
        """Make what is missing of a plan's read-only paths; returns which files they are. Before the fork."""
        paths = plan["read_only"]
        for one in paths:
            _make_missing(one)
        if self._events is None or plan["trusted"]:
            return {}
        self._events.watch(folder for one in paths for folder in _folder_to_watch(one["path"], plan["workspace"]))
        return {one["path"]: _identity(one["path"]) for one in paths if os.path.lexists(one["path"])}

    def add(self, pid: int, plan: dict[str, Any], identities: dict[str, Identity]) -> None:
        """Watch a new worker."""
        limits = plan["limits"]
        self._workers[pid] = _Watched(limits["memory"], identities)
        if self._groups is not None:
            self._groups.place(pid, limits["memory"], limits["processes"])

    def remove(self, pid: int, *, killed: bool) -> str:
        """Forget a worker that has ended; returns why it was ended, if that was for its memory."""
        watched = self._workers.pop(pid, None)
        if watched is None or self._groups is None:
            return ""
        exceeded = killed and self._groups.exceeded(pid)
        self._groups.remove(pid)
        return _too_much(watched) if exceeded else ""

    def replaced(self) -> dict[int, str]:
        """Workers that could write a path that was replaced, each with why it is ended."""
        if self._events is not None:
            self._events.clear()
        now: dict[str, Identity] = {}
        found = {}
        for pid, watched in self._workers.items():
            for path, before in watched.identities.items():
                if path not in now:
                    now[path] = _identity(path)
                if now[path] != before:
                    found[pid] = f"was stopped, since {Path(path).name} was replaced while it ran"
                    break
        return found

    def over_limit(self) -> dict[int, str]:
        """Workers that take more memory than they may, each with why it is ended."""
        return {pid: _too_much(one) for pid, one in self._workers.items() if self._exceeds(pid, one)}

    def _exceeds(self, pid: int, watched: _Watched) -> bool:
        if self._groups is not None:
            return self._groups.exceeded(pid)
        return memory_of(pid, watched.memory) > watched.memory


def _too_much(watched: _Watched) -> str:
    return f"took more memory than {watched.memory >> 20} MB and was stopped"


def _folder_to_watch(path: str, workspace: str) -> Iterable[str]:
    """The folder of a path, but for folders within the workspace: agents write there all the time."""
    above = Path(path).parent
    if str(above) == workspace or not above.is_relative_to(workspace):
        yield str(above)


def _identity(path: str) -> Identity:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _make_missing(one: dict[str, Any]) -> None:
    path, content = one["path"], one["content"]
    try:
        if one["folder"]:
            Path(path).mkdir(mode=0o700, parents=True)
        elif content is not None:
            made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            try:
                os.write(made, content.encode())
            finally:
                os.close(made)
    except OSError:
        return  # it is there, or nobody of this account can make it
