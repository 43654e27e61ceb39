"""A worker's own view of the machine: a mount namespace without the home folder, its own process numbers."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from agents.worker import syscalls
from agents.worker.syscalls import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_PRIVATE, MS_REC, MS_REMOUNT

_RESERVED_PIDS = 300  # the kernel numbers processes from here after its first round
_MEMORY_DEVICES = ("mem", "kmem", "port")
_devices: tuple[int, tuple[str, ...]] = (0, ())


@dataclass(frozen=True, slots=True)
class View:
    """What a worker may see.

    ``workspace``: its folder, always readable and writable. ``private_root``: the folder whose other
    contents vanish, or None. ``programs``: folders of the program itself, read-only and never hidden.
    ``processes``: write this bound to the process namespace, where the kernel keeps one per namespace.
    """

    workspace: Path
    private_root: Path | None
    programs: tuple[Path, ...] = ()
    processes: int | None = None


def raw_devices() -> tuple[str, ...]:
    """Disks and memory as devices. Remembered until a device comes or goes: ask before forking."""
    global _devices
    changed = Path("/dev").stat().st_mtime_ns
    if changed != _devices[0]:
        _devices = (changed, tuple(entry.path for entry in os.scandir("/dev") if _is_raw(entry)))
    return _devices[1]


def map_own_account(uid: int, gid: int) -> None:
    """In a fresh user namespace, stay the account one was."""
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def enter(view: View, *, real_root: bool) -> None:
    """Build the view in this process's fresh mount namespace. Raises OSError when any needed part fails.

    ``real_root``: this is root of the whole machine, to whom raw disks and kernel settings must be
    closed as well, since file permissions do not close them.
    """
    syscalls.mount("none", "/", "", MS_REC | MS_PRIVATE)
    own_files = os.open(view.workspace, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    programs = [(path, os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)) for path in view.programs]
    if real_root:
        _hide_raw_devices()
    with contextlib.suppress(OSError):  # containers mask parts of /proc, and then refuse a fresh one
        syscalls.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    if view.processes is not None:
        Path("/proc/sys/kernel/pid_max").write_text(str(_RESERVED_PIDS + view.processes))
        with contextlib.suppress(OSError):  # else the reserved ones may be used once, in the first round
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(_RESERVED_PIDS))
    if real_root:
        _close_kernel_settings()
    for path, fd in programs:
        with contextlib.suppress(OSError):  # before Linux 5.12 it stays writable for its owner
            _bind(fd, path)
            syscalls.make_read_only(os.fspath(path))
    if view.private_root is not None and view.private_root != view.workspace:
        _hide(view.private_root, [(view.workspace, own_files), *programs])
    if any(view.workspace.is_relative_to(path) for path in view.programs):
        _bind(own_files, view.workspace)
    os.close(own_files)
    for _, fd in programs:
        os.close(fd)


def _hide(root: Path, shown: list[tuple[Path, int]]) -> None:
    syscalls.mount("rappd", os.fspath(root), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m,nr_inodes=256")
    for position, (path, fd) in enumerate(shown):
        if path.is_relative_to(root):
            path.mkdir(parents=True, exist_ok=True)
            _bind(fd, path)
            if position:  # all but the workspace
                with contextlib.suppress(OSError):
                    syscalls.make_read_only(os.fspath(path))
    flags = MS_REMOUNT | MS_BIND | syscalls.MS_RDONLY | MS_NOSUID | MS_NODEV
    syscalls.mount("none", os.fspath(root), "", flags)


def _bind(fd: int, path: Path) -> None:
    syscalls.mount(f"/proc/self/fd/{fd}", os.fspath(path), "", MS_BIND | MS_REC)


def _hide_raw_devices() -> None:
    for path in raw_devices():
        with contextlib.suppress(OSError):
            syscalls.mount("/dev/null", path, "", MS_BIND)


def _is_raw(entry: os.DirEntry[str]) -> bool:
    if entry.name in _MEMORY_DEVICES:
        return True
    try:
        return stat.S_ISBLK(entry.stat(follow_symlinks=False).st_mode)
    except OSError:
        return False  # unplugged meanwhile


def _close_kernel_settings() -> None:
    for path in ("/proc/sys", "/sys/kernel", "/sys/fs/cgroup"):
        with contextlib.suppress(OSError):
            syscalls.mount(path, path, "", MS_BIND | MS_REC)
            syscalls.make_read_only(path)
    for path in ("/proc/sysrq-trigger", "/proc/kcore"):
        with contextlib.suppress(OSError):
            syscalls.mount("/dev/null", path, "", MS_BIND)
