"""Devices that workers of root may use: file permissions keep root from none.

Disks, memory, keyboards, consoles, screens and buses show or change what belongs to others; among some
hundred kinds of devices those that agents have a use for are the fewer.
"""

from __future__ import annotations

import os
from fnmatch import fnmatchcase

from agents.runtimes.python.sandbox import syscalls
from agents.runtimes.python.sandbox.syscalls import MS_BIND, MS_NODEV, MS_NOEXEC, MS_NOSUID, MS_REC

_FOLDER = "/dev"
OPEN = (
    *("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm", "mqueue", "hugepages"),
    *("fuse", "kvm", "dri", "nvidia*", "kfd", "dxg", "accel"),  # computing
    *("snd", "video*", "media*", "v4l"),  # sound and cameras
    *("ttyS*", "ttyUSB*", "ttyACM*", "ttyAMA*", "serial", "i2c-*", "spidev*", "gpiochip*", "gpiomem*"),
)
"""Names in ``/dev``."""

_closed: tuple[int, tuple[str, ...]] = (0, ())


def closed_devices() -> tuple[str, ...]:
    """Paths of the devices and folders that are not open. Remembered until one comes or goes: ask before forking."""
    global _closed
    changed = os.stat(_FOLDER).st_mtime_ns
    if changed != _closed[0]:
        with os.scandir(_FOLDER) as entries:
            found = tuple(one.path for one in entries if not one.is_symlink() and not _is_open(one.name))
        _closed = (changed, found)
    return _closed[1]


HARMLESS = ("null", "zero", "full", "random", "urandom", "tty")
"""Devices that tell and change nothing beyond a process."""


def replace_devices() -> None:
    """Replace ``/dev`` of this process's mount namespace with one that has the harmless devices alone."""
    copies = [
        (name, syscalls.copy_mounts(f"{_FOLDER}/{name}"))
        for name in HARMLESS
        if os.path.exists(f"{_FOLDER}/{name}")
    ]
    syscalls.mount("rappd", _FOLDER, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755,size=64k")
    for name, copy in copies:
        os.mknod(f"{_FOLDER}/{name}", 0o444)
        syscalls.attach_mounts(copy, f"{_FOLDER}/{name}")
    for name in ("shm", "pts"):
        os.mkdir(f"{_FOLDER}/{name}")
    for name, leads in (("fd", "fd"), ("stdin", "fd/0"), ("stdout", "fd/1"), ("stderr", "fd/2")):
        os.symlink(f"/proc/self/{leads}", f"{_FOLDER}/{name}")
    os.symlink("pts/ptmx", f"{_FOLDER}/ptmx")


class DeviceFolder:
    """A ``/dev`` with the open devices alone, in this process's mount namespace and those made from it later.

    Devices that are closed are empty files in it, and so are disks that come later: nothing is closed too
    late.
    """

    def __init__(self) -> None:
        self._real = os.open(_FOLDER, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._seen: set[str] = set()
        self._changed = 0
        flags = MS_NOSUID | MS_NODEV | MS_NOEXEC
        syscalls.mount("rappd", _FOLDER, "tmpfs", flags, "mode=0755,size=256k,nr_inodes=4k")
        self.refresh()

    def refresh(self) -> None:
        """Add the devices that have come since the last time."""
        changed = os.stat(self._path("")).st_mtime_ns
        if changed == self._changed:
            return
        self._changed = changed
        for name in set(os.listdir(self._path(""))) - self._seen:
            self._seen.add(name)
            self._add(name)

    def close(self) -> None:
        """Forget the devices' own folder; the new one stays. Idempotent."""
        if self._real >= 0:
            os.close(self._real)
            self._real = -1

    def _add(self, name: str) -> None:
        source, target = self._path(name), f"{_FOLDER}/{name}"
        if (
            name == "ptmx"
        ):  # the kernel looks for "pts" beside the device, and beside a mount of it finds none
            os.symlink("pts/ptmx", target)
        elif os.path.islink(source):
            os.symlink(os.readlink(source), target)
        else:
            if os.path.isdir(source):
                os.mkdir(target)
            else:
                os.mknod(target, 0o444)
            if _is_open(name):
                syscalls.mount(source, target, "", MS_BIND | MS_REC)

    def _path(self, name: str) -> str:
        return f"/proc/self/fd/{self._real}/{name}"


def _is_open(name: str) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in OPEN)
