"""Watches running workers, in the zygote: memory, and read-only paths that were replaced."""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.runtimes.python.pools.started_processes import descendants
from agents.runtimes.python.sandbox.cgroup_limit import MemoryGroups
from agents.runtimes.python.sandbox.file_access import is_within
from agents.storage.safe_open import open_made_folder, open_root

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


_MOVED_FROM, _MOVED_TO, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x40, 0x80, 0x200, 0x400, 0x800
_ONLY_FOLDERS = 0x0100_0000
_WANTED = _MOVED_FROM | _MOVED_TO | _DELETE | _DELETE_SELF | _MOVE_SELF | _ONLY_FOLDERS
_BYTES = 64 * 1024

_libc = ctypes.CDLL(None, use_errno=True)


class FileEvents:
    """Folders in which names are watched. Where the system has no more watches, ``fd`` tells less."""

    def __init__(self) -> None:
        started = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self.fd: int | None = started if started >= 0 else None

    def watch(self, folders: Iterable[str]) -> None:
        """Tell of names in these folders too. A folder that is watched already stays so."""
        if self.fd is not None:
            for folder in dict.fromkeys(folders):
                _libc.inotify_add_watch(self.fd, os.fsencode(folder), _WANTED)

    def clear(self) -> None:
        """Take in what was told."""
        if self.fd is not None:
            try:
                while os.read(self.fd, _BYTES):
                    pass
            except BlockingIOError:
                return


_PAGE = os.sysconf("SC_PAGE_SIZE")
_BLOCK = 512  # bytes, the unit of st_blocks


def memory_of(pid: int, limit: int) -> int:
    """Bytes that ``pid`` and all processes below it take: their own memory, files without a name, and the private /dev/shm.

    Memory that several of them share counts once; that is only measured when the sum of all is over
    ``limit``.
    """
    pids = [pid, *descendants(pid)]
    unnamed = _unnamed_files(pids) + _private_shared_memory(pid)
    resident = sum(map(_resident, pids))
    if resident + unnamed <= limit:
        return resident + unnamed
    own, shared = 0, 0
    for one in pids:
        parts = _proportional(one)
        own += parts.get("Pss_Anon", 0)
        shared += parts.get("Pss_Shmem", 0)
    return own + max(shared, unnamed)


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except OSError:
        return 0  # it ended meanwhile


def _unnamed_files(pids: Iterable[int]) -> int:
    """Bytes in files made by ``memfd_create`` that these processes have open."""
    found: dict[tuple[int, int], int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):
            for entry in os.scandir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    if os.readlink(entry.path).startswith("/memfd:"):
                        status = os.stat(entry.path)
                        found[status.st_dev, status.st_ino] = status.st_blocks * _BLOCK
    return sum(found.values())


def _private_shared_memory(pid: int) -> int:
    path = f"/proc/{pid}/root/dev/shm"
    try:
        if os.stat(path).st_dev == os.stat("/dev/shm").st_dev:  # noqa: S108
            return 0  # the machine's: others have files there
        usage = os.statvfs(path)
    except OSError:
        return 0
    return (usage.f_blocks - usage.f_bfree) * usage.f_frsize


def _proportional(pid: int) -> dict[str, int]:
    found = {}
    with contextlib.suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
            name, _, rest = line.partition(":")
            found[name] = int(rest.split()[0]) * 1024
    return found
