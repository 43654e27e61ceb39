"""Landlock: closing folders to a process and its children, for where no mount namespace is allowed.

Landlock only knows what is allowed, so every folder beside the hidden one is named; files created later
directly in a parent folder of the hidden one, and listings of those parents, stay closed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from agents.worker.namespaces import View, raw_devices
from agents.worker.syscalls import system_call

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_REFER, _TRUNCATE, _IOCTL_DEVICE = 1 << 13, 1 << 14, 1 << 15
_SCOPE_SIGNAL = 2
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


def enter(view: View, *, real_root: bool) -> None:
    """Close ``view.private_root`` but for the workspace, and make the programs read-only, for good; for
    root close the raw disks too. Needs ``no_new_privs``. Raises OSError.
    """
    rules = _Rules(version())
    rights = dict.fromkeys(view.programs, rules.all & _READING)
    if real_root:
        rights |= dict.fromkeys(map(Path, raw_devices()), 0)
    if view.private_root is not None:
        rights[view.private_root] = 0
    rights[view.workspace] = rules.all
    rules.walk(Path("/"), rules.all, rights)
    rules.enforce()


def confine(*, hidden: Sequence[Path], readable: Sequence[Path], writable: Sequence[Path]) -> None:
    """Leave this process the whole system to read but for ``hidden``, in which ``readable`` is left, and
    only ``writable`` to write. Needs ``no_new_privs``. Raises OSError.
    """
    rules = _Rules(version())
    reading = rules.all & _READING
    rights = dict.fromkeys(hidden, 0) | dict.fromkeys(readable, reading) | dict.fromkeys(writable, rules.all)
    rules.walk(Path("/"), reading, {path: own for path, own in rights.items() if _above(path, rights) != own})
    rules.enforce()


def _above(path: Path, rights: Mapping[Path, int]) -> int | None:
    """What is said of the nearest folder above: naming the same again would close its listing."""
    return next((rights[folder] for folder in path.parents if folder in rights), None)


class _Rules:
    def __init__(self, abi: int) -> None:
        self.all = _ALL_OF_VERSION_1
        for since, right in ((2, _REFER), (3, _TRUNCATE), (5, _IOCTL_DEVICE)):
            if abi >= since:
                self.all |= right
        scoped = _SCOPE_SIGNAL if abi >= 6 else 0  # a worker may signal its own processes only
        attributes = _Ruleset(self.all, 0, scoped)
        size = 8 if abi < 4 else 16 if abi < 6 else 24
        self._fd = _checked(system_call(_CREATE_RULESET, ctypes.byref(attributes), size, 0))

    def walk(self, path: Path, rights: int, special: dict[Path, int]) -> None:
        """Allow ``rights`` at ``path`` and below, but what ``special`` says where it says something."""
        rights = special.get(path, rights)
        if not any(other != path and other.is_relative_to(path) for other in special):
            self._allow(path, rights)
            return
        with contextlib.suppress(PermissionError):  # what cannot be listed cannot be named
            for entry in os.scandir(path):
                if not entry.is_symlink():  # its target counts, not the link
                    self.walk(path / entry.name, rights, special)

    def enforce(self) -> None:
        _checked(system_call(_RESTRICT_SELF, self._fd, 0))
        os.close(self._fd)

    def _allow(self, path: Path, rights: int) -> None:
        if not rights:
            return
        try:
            fd = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return  # gone, or not ours to open
        try:
            allowed = rights if path.is_dir() else rights & _ON_FILES
            rule = _PathBeneath(allowed, fd)
            _checked(system_call(_ADD_RULE, self._fd, _PATH_BENEATH, ctypes.byref(rule), 0))
        finally:
            os.close(fd)


def _checked(answer: int) -> int:
    if answer < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"landlock: {os.strerror(number)}")
    return answer
