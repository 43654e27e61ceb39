"""A worker's own view of the machine: a mount namespace without the home folder, its own process numbers."""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from agents.runtimes.python.sandbox import syscalls
from agents.runtimes.python.sandbox.devices import DeviceFolder, replace_devices
from agents.runtimes.python.sandbox.file_access import Access, folders_above, is_within
from agents.runtimes.python.sandbox.syscalls import (
    MS_BIND,
    MS_NODEV,
    MS_NOEXEC,
    MS_NOSUID,
    MS_PRIVATE,
    MS_RDONLY,
    MS_REC,
    MS_REMOUNT,
)

_SHARED_MEMORY = "/dev/shm"  # noqa: S108
_FOLDERS = "mode=0755,size=1m,nr_inodes=256"  # options of what is mounted to lead to what is shown
_SCRATCH = "mode=1777,size=256m"
DATA_FOLDERS = (".brainstem_data", ".deps")
_RESERVED_PIDS = 300  # the kernel numbers processes from here after its first round
# Files of uid 0, also in a user namespace of its own: settings of the kernel and of devices, and what tells
# of other programs (usbmon shows what keyboards send). As in the lists of what containers close.
_READ_ONLY_TO_ROOT = (
    "/proc/sys",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/scsi",
    "/proc/acpi",
    "/proc/mtrr",
)
_OF_THE_MACHINE = ("cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems")
_CLOSED_IN_PROC = ("/proc/sysrq-trigger", "/proc/kcore")
CLOSED_TO_ROOT = ("/sys/kernel/debug", "/sys/kernel/tracing")
"""Folders of the kernel that no worker of root may open."""


@dataclass(frozen=True, slots=True)
class MountNamespace:
    """The paths that a worker may see and write.

    ``workspace``: its folder, readable and writable but for ``read_only``. ``private_root``: the folder
    whose other contents vanish, or None. ``programs``: what programs are loaded from, never hidden.
    ``writable``: existing paths outside the workspace that stay writable. ``read_only``: existing paths
    inside of these, or inside the workspace, that do not. ``sockets``: to be closed. ``processes``: write
    this bound to the process namespace, where the kernel keeps one per namespace. ``shared_memory``: bytes
    that fit into the worker's own /dev/shm. ``closed_to_root``: what ``close_to_root`` closes was closed
    before the fork. ``private``: paths that are hidden besides. ``scratch``: those of them that are empty and can be
    written. ``confined``: of the workspace it sees what the others name alone, and it has devices of its own, which
    are of no use beyond it. ``listed``: folders whose names it may list where only rights are given, not a view.
    """

    workspace: str
    private_root: str | None
    programs: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()
    processes: int | None = None
    shared_memory: int | None = None
    closed_to_root: bool = False
    private: tuple[str, ...] = ()
    scratch: tuple[str, ...] = ()
    confined: bool = False
    listed: tuple[str, ...] = ()

    @lru_cache(maxsize=128)  # noqa: B019 - few views, and equal ones are one
    def access(self) -> Access:
        """The paths that the worker may write."""
        writable = [path for path in self.writable if not self.hides(path)]
        read_only = [path for path in self.read_only if not self.hides(path)]
        root = self.private_root
        hidden = [*self.private, *([root] if root is not None and root != self.workspace else [])]
        if self.confined:
            return Access.of(writable, [*read_only, *self.programs], hidden)
        if self.workspace in read_only:  # then at least its folders for data stay writable
            data = [f"{self.workspace}/{name}" for name in DATA_FOLDERS]
            data = [path for path in data if path not in read_only]
            writable += [path for path in data if os.path.isdir(path) and not os.path.islink(path)]
        return Access.of([*writable, self.workspace], [*read_only, *self.programs], hidden)

    def hides(self, path: str) -> bool:
        """True when ``path`` is in the private folder and not in the workspace."""
        root = self.private_root
        return root is not None and is_within(path, root) and not is_within(path, self.workspace)


def close_to_root() -> DeviceFolder:
    """Close what no worker of root may reach: in this process's mount namespace and in those made from it."""
    for path in filter(os.path.isdir, CLOSED_TO_ROOT):
        syscalls.mount("rappd", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_RDONLY, "mode=0,size=4k")
    return DeviceFolder()


def own_mounts() -> None:
    """Move this process into a mount namespace of its own; what is mounted outside later is seen there."""
    syscalls.unshare(syscalls.CLONE_NEWNS)
    syscalls.mount("none", "/", "", MS_REC | syscalls.MS_SLAVE)


def map_own_account(uid: int, gid: int) -> None:
    """In a fresh user namespace, stay the account one was, unless accounts were named from outside."""
    with open("/proc/self/uid_map", "rb", buffering=0) as named:
        if named.read(1):
            return
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")


def enter(view: MountNamespace, *, real_root: bool) -> None:
    """Build the view in this process's fresh mount namespace. Raises OSError when any needed part fails.

    ``real_root``: this is uid 0 of the whole machine, whom file permissions keep from no setting of the
    kernel.
    """
    syscalls.mount("none", "/", "", MS_REC | MS_PRIVATE)
    if real_root and not view.closed_to_root:
        close_to_root().close()
    access = view.access()
    replaced = _SHARED_MEMORY if view.shared_memory is not None else ""
    writable = [path for path in (*access.writable, *access.pinned) if path != replaced]
    copies = [(path, syscalls.copy_mounts(path)) for path in writable]
    fresh = _mount_proc()
    processes = -1 if fresh else syscalls.copy_mounts("/proc")
    syscalls.make_read_only("/")
    if fresh:
        syscalls.make_writable("/proc")
    else:
        syscalls.attach_mounts(processes, "/proc")
    if view.confined:
        replace_devices()
    _replace_terminals()
    if view.processes is not None:
        Path("/proc/sys/kernel/pid_max").write_text(str(_RESERVED_PIDS + view.processes))
        with contextlib.suppress(OSError):  # else the reserved ones may be used once, in the first round
            Path("/proc/sys/kernel/ns_last_pid").write_text(str(_RESERVED_PIDS))
    if real_root:
        _close_kernel_settings()
    copies += [(path, _copy_read_only(path, access)) for path in access.read_only]
    around = {above for path, _ in copies for above in folders_above(path)}
    # What is writable is mounted again below, over this.
    nothing = _mount_nothing(next(filter(os.path.isdir, (*access.writable, _SHARED_MEMORY))))
    copies += [(path, -1) for path in access.hidden]
    for path, copy in sorted(copies, key=lambda one: len(one[0])):
        if copy >= 0:
            syscalls.attach_mounts(copy, path)
        elif path in around or path in view.scratch:
            room = _SCRATCH if path in view.scratch else _FOLDERS
            _hide(path, [shown for shown, _ in copies if shown != path and is_within(shown, path)], room)
        else:
            _cover(path, nothing)
    for path in access.hidden:
        if path in around and path not in view.scratch:
            syscalls.mount("none", path, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    for path in view.sockets:  # last: they may lie in folders that were mounted again
        _cover(path, nothing)
    os.close(nothing)
    if view.shared_memory is not None:
        _replace_shared_memory(view.shared_memory)
    if view.confined and not fresh:
        _show_own_process()


def _mount_nothing(place: str) -> int:
    """A descriptor of a folder with ``folder`` and ``file``, which nobody opens, to be mounted over what is hidden.

    Root opens a file of every mode, but no device on a file system that has none. It stays at ``place``, over
    which something else has to be mounted: taking a mount away is slow.
    """
    syscalls.mount("rappd", place, "tmpfs", MS_NOSUID | MS_NODEV, "mode=0700,size=4k")
    os.mkdir(f"{place}/folder", 0)
    try:
        os.mknod(f"{place}/file", stat.S_IFCHR, 0)  # device 0, which every account may make (Linux 5.8)
    except PermissionError:
        os.mknod(f"{place}/file", 0)
    syscalls.mount("none", place, "", MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV)
    return os.open(place, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)


def _cover(path: str, nothing: int) -> None:
    """Mount nothing over a file or a folder. No copy as for others: closing one costs more than the mount."""
    kind = "folder" if os.path.isdir(path) else "file"
    with contextlib.suppress(FileNotFoundError):  # it went away meanwhile
        syscalls.mount(f"/proc/self/fd/{nothing}/{kind}", path, "", MS_BIND)


def _copy_read_only(path: str, access: Access) -> int:
    """A copy of what is at ``path``, taken when everything is read-only.

    A link that leads nowhere or to what the worker does not see shows an empty file.
    """
    try:
        opened = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return syscalls.copy_mounts("/dev/null")
    try:
        here = f"/proc/self/fd/{opened}"
        if os.path.islink(path) and access.hides(os.readlink(here)):
            return syscalls.copy_mounts("/dev/null")
        return syscalls.copy_mounts(here)
    finally:
        os.close(opened)


def _hide(root: str, shown: list[str], room: str) -> None:
    outermost = [one for one in shown if not any(one != other and is_within(one, other) for other in shown)]
    folders = {one: os.path.isdir(one) for one in outermost}
    syscalls.mount("rappd", root, "tmpfs", MS_NOSUID | MS_NODEV, room)
    for path, is_folder in folders.items():
        os.makedirs(path if is_folder else os.path.dirname(path), exist_ok=True)
        if not is_folder:
            os.mknod(path)


def _mount_proc() -> bool:
    """Mount a fresh /proc. Containers mask parts of /proc, and then refuse one: the one there is stays.

    No copy is taken beforehand: throwing one away makes the kernel wait for all processors.
    """
    try:
        syscalls.mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC)
    except OSError:
        return False
    return True


def _show_own_process() -> None:
    """Replace the /proc of others with this process's own part of it, and what tells of the machine alone."""
    me = os.readlink("/proc/self")
    names = [name for name in (me, *_OF_THE_MACHINE) if os.path.exists(f"/proc/{name}")]
    copies = [(name, os.path.isdir(f"/proc/{name}"), syscalls.copy_mounts(f"/proc/{name}")) for name in names]
    syscalls.mount("rappd", "/proc", "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=64k")
    for name, is_folder, copy in copies:
        if is_folder:
            os.mkdir(f"/proc/{name}")
        else:
            os.mknod(f"/proc/{name}", 0o444)
        syscalls.attach_mounts(copy, f"/proc/{name}")
    os.symlink(me, "/proc/self")
    os.symlink(f"{me}/task/{me}", "/proc/thread-self")


def _replace_terminals() -> None:
    """Terminals of its own: at those of the account the owner types, and reads what programs say."""
    with contextlib.suppress(OSError):  # a container without terminals
        syscalls.mount(
            "rappd", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"
        )
        if not os.path.islink("/dev/ptmx"):
            syscalls.mount("/dev/pts/ptmx", "/dev/ptmx", "", MS_BIND)


def _replace_shared_memory(size: int) -> None:
    options = f"mode=1777,size={size}"
    with contextlib.suppress(FileNotFoundError):
        syscalls.mount("rappd", _SHARED_MEMORY, "tmpfs", MS_NOSUID | MS_NODEV, options)


def _close_kernel_settings() -> None:
    for path in _READ_ONLY_TO_ROOT:
        if os.path.exists(path):
            with contextlib.suppress(OSError):  # a container may have closed it itself
                syscalls.mount(path, path, "", MS_BIND | MS_REC)
                syscalls.make_read_only(path)
    for path in _CLOSED_IN_PROC:
        with contextlib.suppress(OSError):
            syscalls.mount("/dev/null", path, "", MS_BIND)
