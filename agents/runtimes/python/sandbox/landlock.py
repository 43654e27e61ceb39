"""Landlock: closing folders to a process and its children, for where no mount namespace is allowed.

Landlock only knows what is allowed, so every folder beside the hidden one is named; files created later
directly in a parent folder of the hidden one, and listings of those parents, stay closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import replace

from agents.runtimes.python.sandbox.devices import HARMLESS, closed_devices
from agents.runtimes.python.sandbox.file_access import folders_above, is_within
from agents.runtimes.python.sandbox.namespaces import CLOSED_TO_ROOT, DATA_FOLDERS, MountNamespace
from agents.runtimes.python.sandbox.syscalls import system_call

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNAL = 1, 2
_SCOPES_SINCE = 6
_ALL_OF_VERSION_1 = (1 << 13) - 1
_READING = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEVICE


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def version() -> int:
    """The kernel's Landlock version, 0 where there is none."""
    return max(0, system_call(_CREATE_RULESET, None, 0, _VERSION))


def enter(view: MountNamespace, *, real_root: bool) -> None:
    """Restricts this process to ``view`` for good. Needs ``no_new_privs``. Raises OSError.

    Closes ``view.private_root`` but for the workspace, and ``view.private``, and lets only what
    ``view.access()`` names be written; for root closes devices and files of the kernel too.

    Rights add up: a folder with something read-only inside is not writable itself, only what is in it now.
    What lies in the data folders of the workspace is writable as a whole, since agents make files there.
    """
    rules = _Rules(version())
    data = [
        f"{view.workspace}/{name}" for name in DATA_FOLDERS if not view.confined or name == DATA_FOLDERS[0]
    ]
    read_only, private = (
        tuple(path for path in paths if not any(is_within(path, one) for one in data))
        for paths in (view.read_only, view.private)
    )
    access = replace(view, read_only=read_only, private=private).access()
    devices = (*closed_devices(), *CLOSED_TO_ROOT) if real_root else ()
    if view.confined:
        devices = (*devices, *(f"/dev/{name}" for name in os.listdir("/dev") if name not in HARMLESS))
        me = str(os.getpid())
        devices = (
            *devices,
            *(f"/proc/{name}" for name in os.listdir("/proc") if name.isdigit() and name != me),
        )
    hidden = access.hidden
    shown = [
        path
        for path in (*access.writable, *access.read_only)
        if any(is_within(path, one) for one in hidden) and not os.path.islink(path)
    ]
    rules.allow_below("/", rules.all & _READING, but=(*hidden, *devices))
    for path in shown:
        inside = [one for one in hidden if one != path and is_within(one, path)]
        rules.allow_below(path, rules.all & _READING, but=inside)
    # Root's /proc has settings of the kernel, and all of it tells of other programs.
    own = f"/proc/{os.getpid()}" if real_root or view.confined else "/proc"
    written = [f"/dev/{name}" for name in HARMLESS] if view.confined else ["/dev"]
    for path in (*written, own):
        rules.allow_below(path, rules.all & _ON_FILES, but=devices)
    for path in access.writable:
        rules.allow_below(path, rules.all, but=(*access.read_only, *hidden))
    for path in view.listed:
        rules.allow(path, _READ_DIR)
    rules.enforce()


def closes_abstract_sockets() -> bool:
    """True where ``close_abstract_sockets`` has an effect."""
    return version() >= _SCOPES_SINCE


def close_abstract_sockets() -> None:
    """Keep this process from connecting to abstract sockets of others, where the kernel can (Linux 6.12).

    No file system has them, so that no mount namespace closes them. Needs ``no_new_privs``. Raises OSError.
    """
    if closes_abstract_sockets():
        attributes = _Ruleset(0, 0, _SCOPE_ABSTRACT_SOCKETS)
        rules = _checked(system_call(_CREATE_RULESET, ctypes.byref(attributes), ctypes.sizeof(attributes), 0))
        _checked(system_call(_RESTRICT_SELF, rules, 0))
        os.close(rules)


def confine(*, hidden: Sequence[str], readable: Sequence[str], writable: Sequence[str]) -> None:
    """Leave this process the whole system to read but for ``hidden``, in which ``readable`` is left, and only ``writable`` to write.

    Needs ``no_new_privs``. Raises OSError.
    """
    rules = _Rules(version())
    reading = rules.all & _READING
    rules.allow_below("/", reading, but=hidden)
    for path in readable:
        rules.allow_below(path, reading, but=[one for one in hidden if one != path])
    for path in writable:
        rules.allow(path, rules.all)
    rules.enforce()


class _Rules:
    def __init__(self, abi: int) -> None:
        self.all = _ALL_OF_VERSION_1
        for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE)):
            if abi >= since:
                self.all |= right
        # A worker signals its own processes alone, and connects to their abstract sockets alone: the screen
        # and the session bus listen at such, where the network is the machine's.
        scoped = _SCOPE_SIGNAL | _SCOPE_ABSTRACT_SOCKETS if abi >= _SCOPES_SINCE else 0
        attributes = _Ruleset(self.all, 0, scoped)
        size = 8 if abi < 4 else 16 if abi < 6 else 24
        self._fd = _checked(system_call(_CREATE_RULESET, ctypes.byref(attributes), size, 0))

    def allow_below(self, path: str, rights: int, but: Iterable[str]) -> None:
        """Allow ``rights`` at ``path`` and below, without ``but``: the folders that lead there are opened entry by entry."""
        without = {one for one in but if is_within(one, path)}
        leading = {above for one in without for above in folders_above(one)}
        ahead = [path]
        while ahead:
            path = ahead.pop()
            if path in without:
                continue
            if path not in leading:
                self.allow(path, rights)
                continue
            with (
                contextlib.suppress(OSError),
                os.scandir(path) as entries,
            ):  # what cannot be listed cannot be named
                ahead += [entry.path for entry in entries if not entry.is_symlink()]  # its target counts

    def enforce(self) -> None:
        _checked(system_call(_RESTRICT_SELF, self._fd, 0))
        os.close(self._fd)

    def allow(self, path: str, rights: int) -> None:
        """Allow ``rights`` at ``path`` and below."""
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return  # gone, or not ours to open
        try:
            allowed = rights if stat.S_ISDIR(os.fstat(fd).st_mode) else rights & _ON_FILES
            rule = _PathBeneath(allowed, fd)
            _checked(system_call(_ADD_RULE, self._fd, _PATH_BENEATH, ctypes.byref(rule), 0))
        finally:
            os.close(fd)


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"landlock: {os.strerror(number)}")
    return answer
