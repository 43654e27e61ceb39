"""Watch over running workers, by the process that forks them: memory, and read-only paths replaced."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.storage.safe_open import open_made_folder, open_root
from agents.workers.access import is_within
from agents.workers.cgroup_limit import MemoryGroups
from agents.workers.file_events import FileEvents
from agents.workers.memory_use import memory_of

SECONDS = 0.25
"""Between two looks at every worker."""

Identity = tuple[int, int] | None


@dataclass(slots=True)
class _Watched:
    memory: int
    identities: dict[str, Identity] = field(default_factory=dict)


class WorkerWatch:
    """Tells which workers have to be ended, and why.

    A read-only path of a mount namespace is a mount on one file or folder. A process that replaces that outside,
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

    def add(self, pid: int, plan: dict[str, Any], read_only: dict[str, Identity]) -> None:
        """Watch a new worker; ``read_only`` are its read-only paths as they were before it was started."""
        limits = plan["limits"]
        watched = self._workers[pid] = _Watched(limits["memory"])
        if self._events is not None and not plan["trusted"]:
            watched.identities = read_only
            self._events.watch(_folders_to_watch(read_only, plan["workspace"]))
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


def make_missing(paths: Iterable[dict[str, Any]], workspace: str) -> dict[str, Identity]:
    """Make what is missing of a plan's read-only paths; returns those that exist, and which files they are."""
    found: dict[str, Identity] = {}
    for one in paths:
        path = one["path"]
        identity = _identity(path)
        if identity is None and (one["folder"] or one["content"] is not None):
            _make(path, one["content"], workspace)
            identity = _identity(path)
        if identity is not None:
            found[path] = identity
    return found


def _folders_to_watch(paths: Iterable[str], workspace: str) -> Iterator[str]:
    """The folders of paths, but for those within the workspace: agents write there all the time."""
    for path in paths:
        above = os.path.dirname(path)
        if above == workspace or not is_within(above, workspace):
            yield above


def _identity(path: str) -> Identity:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _make(path: str, content: str | None, workspace: str) -> None:
    """Make a folder, or a file with ``content``. In the workspace no link is followed: agents write there."""
    root = workspace if is_within(path, workspace) else os.path.dirname(path)
    names = os.path.relpath(path, root).split("/")
    with contextlib.suppress(OSError):  # somebody else made it, or nobody of this account can
        folder = open_root(root)
        try:
            if content is None:
                os.close(open_made_folder(folder, names))
            else:
                _make_file(folder, names, content)
        finally:
            os.close(folder)


def _make_file(folder: int, names: list[str], content: str) -> None:
    above = open_made_folder(folder, names[:-1]) if names[1:] else os.dup(folder)
    try:
        made = os.open(names[-1], os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600, dir_fd=above)
        with os.fdopen(made, "wb") as file:
            file.write(content.encode())
    finally:
        os.close(above)
