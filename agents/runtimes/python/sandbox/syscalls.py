"""The Linux calls that Python 3.11 does not wrap, each raising OSError with the name of the call."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

CLONE_NEWNS = 0x0002_0000
CLONE_NEWUSER = 0x1000_0000
CLONE_NEWPID = 0x2000_0000
CLONE_NEWIPC = 0x0800_0000
CLONE_NEWNET = 0x4000_0000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 32, 4096, 16384, 1 << 18
MS_SLAVE = 1 << 19
_OPTION_FLAGS = {
    "ro": MS_RDONLY, "nosuid": MS_NOSUID, "nodev": MS_NODEV, "noexec": MS_NOEXEC,
    "noatime": 1 << 10, "nodiratime": 1 << 11, "relatime": 1 << 21,
}  # fmt: skip

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_CAPBSET_READ, PR_CAPBSET_DROP = 1, 4, 23, 24
PR_SET_CHILD_SUBREAPER, PR_SET_NO_NEW_PRIVS, PR_GET_TID_ADDRESS, PR_CAP_AMBIENT = 36, 38, 40, 47

LINUX = sys.platform == "linux"

_SYS_KEYCTL = {"x86_64": 250, "aarch64": 219, "riscv64": 219}.get(platform.machine(), 311)  # 311: arm
_KEYCTL_GET_KEYRING_ID, _KEYCTL_JOIN_SESSION_KEYRING, _SESSION_KEYRING = 0, 1, -3

# one number on every architecture, as all calls added since Linux 5.0
_SYS_OPEN_TREE, _SYS_MOVE_MOUNT, _SYS_MOUNT_SETATTR = 428, 429, 442
_AT_FDCWD, _AT_RECURSIVE, _MOUNT_ATTR_RDONLY = -100, 0x8000, 1
_OPEN_TREE_CLONE, _MOVE_MOUNT_F_EMPTY_PATH = 1, 4

_libc = ctypes.CDLL(None, use_errno=True)
_Bytes, _Ulong = ctypes.c_char_p, ctypes.c_ulong
if LINUX:
    _libc.mount.argtypes = (_Bytes, _Bytes, _Bytes, _Ulong, _Bytes)
    _libc.prctl.argtypes = (ctypes.c_int, _Ulong, _Ulong, _Ulong, _Ulong)


class _MountAttributes(ctypes.Structure):
    _fields_ = tuple((name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "userns_fd"))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """``mount(2)``."""
    where = os.fsencode(target)
    _check(_libc.mount(source.encode(), where, kind.encode(), flags, options.encode()), f"mount {target}")


def make_read_only(target: str) -> None:
    """Make the mount at ``target`` and all below it read-only."""
    try:
        _set_attributes(target, _MountAttributes(set=_MOUNT_ATTR_RDONLY), _AT_RECURSIVE)
    except OSError as problem:
        if problem.errno != errno.ENOSYS:
            raise
        for point, flags in _mounts_within(target):  # before Linux 5.12 each mount by itself
            _remount(point, flags | MS_RDONLY)


def make_writable(target: str) -> None:
    """Undo ``make_read_only`` for the mount at ``target`` alone."""
    try:
        _set_attributes(target, _MountAttributes(clear=_MOUNT_ATTR_RDONLY), 0)
    except OSError as problem:
        if problem.errno != errno.ENOSYS:
            raise
        for point, flags in _mounts_within(target):
            if point == target:
                _remount(point, flags & ~MS_RDONLY)


def _mounts_within(target: str) -> list[tuple[str, int]]:
    """(mount point, flags) of the mounts at ``target`` and below; of several at one point, the last."""
    found: dict[str, int] = {}
    with open("/proc/self/mountinfo", "rb") as lines:  # noqa: PTH123 - a worker's start would pay for pathlib
        for line in lines:
            fields = line.split()
            point = os.fsdecode(fields[4].decode("unicode_escape").encode("latin-1"))
            if target == "/" or point == target or point.startswith(f"{target}/"):
                options = fields[5].decode().split(",")
                found[point] = sum(flag for name, flag in _OPTION_FLAGS.items() if name in options)
    return list(found.items())


def _remount(point: str, flags: int) -> None:
    try:
        mount("none", point, "", MS_REMOUNT | MS_BIND | flags)
    except OSError as problem:
        # What no path leads to (another mount covers it, or rights close it) is closed to the worker, too.
        if problem.errno not in (errno.EINVAL, errno.ENOENT, errno.EACCES):
            raise


def _set_attributes(target: str, attributes: _MountAttributes, flags: int) -> None:
    done = system_call(
        _SYS_MOUNT_SETATTR,
        _AT_FDCWD,
        _Bytes(os.fsencode(target)),
        flags,
        ctypes.byref(attributes),
        ctypes.sizeof(attributes),
    )
    _check(done, f"mount_setattr {target}")


def unshare(flags: int) -> None:
    """``unshare(2)``."""
    _check(_libc.unshare(flags), "unshare")


def copy_mounts(path: str) -> int:
    """A descriptor of a detached copy of the mount at ``path`` and all below it (Linux 5.2).

    A link at the end of ``path`` is followed.
    """
    flags = _OPEN_TREE_CLONE | _AT_RECURSIVE | os.O_CLOEXEC
    copy = system_call(_SYS_OPEN_TREE, _AT_FDCWD, _Bytes(os.fsencode(path)), flags)
    return _check(copy, f"open_tree {path}")


def attach_mounts(copy: int, target: str) -> None:
    """Attach what ``copy_mounts`` copied at ``target``, a link at its end included, and close ``copy``."""
    where = _Bytes(os.fsencode(target))
    done = system_call(_SYS_MOVE_MOUNT, copy, _Bytes(b""), _AT_FDCWD, where, _MOVE_MOUNT_F_EMPTY_PATH)
    number = ctypes.get_errno()
    os.close(copy)
    ctypes.set_errno(number)
    _check(done, f"move_mount {target}")


def prctl(option: int, value: int, third: int = 0) -> int:
    """``prctl(2)``."""
    return _check(_libc.prctl(option, value, third, 0, 0), f"prctl {option}")


def drop_from_bounds(numbers: Iterable[int]) -> None:
    """Takes capabilities out of the bounding set, up to the last one that the kernel knows."""
    for number in numbers:
        if _libc.prctl(PR_CAPBSET_DROP, number, 0, 0, 0) < 0:
            return  # there are no more, or there is no right to drop any: then none is held


def thread_number_address() -> int:
    """The address at which the C library keeps the calling thread's number, 0 when the kernel does not tell."""
    address = ctypes.c_void_p(0)
    where = ctypes.cast(ctypes.byref(address), ctypes.c_void_p).value or 0
    if _libc.prctl(PR_GET_TID_ADDRESS, where, 0, 0, 0) < 0:
        return 0
    return address.value or 0


def system_call(number: int, *arguments: object) -> int:
    """The raw answer of system call ``number``: -1 on failure, with ``ctypes.get_errno()``.

    Whole numbers are passed as C longs; pointers must come as ctypes objects.
    """
    wide = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    return int(_libc.syscall(ctypes.c_long(number), *wide))


def join_session_keyring() -> None:
    """Move this process to a new session keyring, which holds nothing. Raises OSError."""
    _check(system_call(_SYS_KEYCTL, _KEYCTL_JOIN_SESSION_KEYRING, None), "keyctl")


def session_keyring() -> int:
    """The number of this process's session keyring. Raises OSError."""
    return _check(system_call(_SYS_KEYCTL, _KEYCTL_GET_KEYRING_ID, _SESSION_KEYRING, 0), "keyctl")


def capget(header: ctypes.Structure, data: ctypes.Array[ctypes.c_uint32]) -> None:
    """``capget(2)``."""
    _check(_libc.capget(ctypes.byref(header), data), "capget")


def capset(header: ctypes.Structure, data: ctypes.Array[ctypes.c_uint32]) -> None:
    """``capset(2)``."""
    _check(_libc.capset(ctypes.byref(header), data), "capset")


def _check(answer: int, name: str) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
    return answer


def anonymous_file(contents: bytes) -> int:
    """A descriptor of a file that holds ``contents`` and vanishes with its last descriptor."""
    if sys.platform == "linux":
        fd = os.memfd_create("rappd", os.MFD_CLOEXEC)
    else:
        fd, path = tempfile.mkstemp(prefix="rappd")
        Path(path).unlink()
    left = memoryview(contents)
    while left:
        left = left[os.write(fd, left) :]
    return fd
