"""Opening folders and files beneath a folder that is open already, without following a symbolic link.

``openat2`` resolves a whole path in the kernel (Linux 5.6). Where it is missing or forbidden, each folder is
opened from the one above it with ``O_NOFOLLOW``.
"""

from __future__ import annotations

import errno
import os
import platform
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agents.errors import AgentError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# NONBLOCK: opening a named pipe must not wait for a writer.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

TEMPORARY_PREFIX = ".tmp-"
"""Files being written; one that stays behind belongs to a process that died."""

_SYS_OPENAT2 = 437  # the same on all architectures but Alpha
_RESOLVE_NO_MAGICLINKS, _RESOLVE_NO_SYMLINKS, _RESOLVE_BENEATH = 0x02, 0x04, 0x08
_RETRIES = 8
_LONGEST = 1024  # characters of a path that is resolved in one call, which takes 4096 bytes
_MISSING = frozenset({errno.ENOSYS, errno.EPERM, errno.EACCES, errno.EINVAL, errno.E2BIG})
_REFUSED = frozenset({errno.ELOOP, errno.ENOTDIR, errno.EXDEV, errno.ENXIO})

Open = Callable[[int, str, int], int]
"""(folder, path beneath it, flags) to a descriptor."""

_openat2: Open | None = None
_is_probed = False


class UnsafeFileError(AgentError, OSError):
    """A link, a pipe, a device or too large a file lies where a regular file or a folder is expected."""

    code = "unsafe_file"
    status = 409
    exit_code = 5

    def __init__(self, message: str, *, do: str = "Remove what lies in its place.") -> None:
        super().__init__(message, do=do)
        self.errno = errno.ELOOP
        self.strerror = message

    def __str__(self) -> str:
        return str(self.args[0])


def open_root(path: str | os.PathLike[str], *, follow: bool = True) -> int:
    """A descriptor of the folder that a tree begins at. ``follow``: it may itself be a link."""
    return os.open(path, _FOLDER & ~os.O_NOFOLLOW if follow else _FOLDER)


def open_folder(folder: int, names: Sequence[str]) -> int:
    """A descriptor of the folder ``names`` beneath ``folder``, at least one level down."""
    return _open(folder, names, _FOLDER)


def open_made_folder(folder: int, names: Sequence[str], *, durable: bool = False) -> int:
    """The same; what is missing is made. ``durable``: folders that are made survive a loss of power."""
    above = folder
    try:
        for name in names:
            try:
                os.mkdir(name, 0o700, dir_fd=above)
            except FileExistsError:
                pass
            else:
                if durable:
                    os.fsync(above)
            inner = _open(above, (name,), _FOLDER)
            if above != folder:
                os.close(above)
            above = inner
    except BaseException:
        if above != folder:
            os.close(above)
        raise
    return above


def open_regular(folder: int, names: Sequence[str]) -> tuple[int, os.stat_result]:
    """A descriptor of the regular file ``names`` beneath ``folder``, and its status. Never waits.

    Raises ``FileNotFoundError``, ``UnsafeFileError``, or another ``OSError`` of the disk.
    """
    descriptor = _open(folder, names, _FILE)
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise UnsafeFileError(f"{names[-1]} is not a regular file.")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, found


def first_bytes(path: Path, count: int) -> bytes:
    """The first ``count`` bytes of a regular file of the owner, links followed. Never waits. Raises ``OSError``."""
    with open(path, "rb", opener=_without_waiting) as file:  # a pipe would be waited for, a device never end
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "It is no regular file")
        return file.read(count)


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def read_regular_file(folder: int, names: Sequence[str], max_bytes: int | None) -> bytes:
    """The content of that file. Raises ``UnsafeFileError`` above ``max_bytes``."""
    descriptor, found = open_regular(folder, names)
    try:
        if max_bytes is not None and found.st_size > max_bytes:
            raise _too_large(names[-1], max_bytes)
        pieces = []
        length = 0
        while piece := os.read(descriptor, max(found.st_size - length, 0) + 1):
            pieces.append(piece)
            length += len(piece)
            if max_bytes is not None and length > max_bytes:
                raise _too_large(names[-1], max_bytes)
    finally:
        os.close(descriptor)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def replace_file(folder: int, name: str, content: bytes, *, durable: bool, staged: int | None = None) -> None:
    """Puts ``content`` in place of the file ``name`` in an open folder, in one step.

    ``durable``: it is on the disk before it takes the place, and in its place before this returns. ``staged`` is the folder in which it is
    written first, else ``folder``.
    """
    staged = folder if staged is None else staged
    temporary = f"{TEMPORARY_PREFIX}{os.getpid()}-{os.urandom(6).hex()}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, 0o600, dir_fd=staged)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(descriptor)
        os.replace(temporary, name, src_dir_fd=staged, dst_dir_fd=folder)
        if durable:
            os.fsync(folder)  # else a power cut could take the name
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=staged)
        raise


def has_openat2() -> bool:
    """True where the kernel resolves paths beneath a folder itself."""
    global _is_probed, _openat2
    if not _is_probed:
        _openat2 = _usable_openat2()
        _is_probed = True
    return _openat2 is not None


def _open(folder: int, names: Sequence[str], flags: int) -> int:
    try:
        if len(names) > 1 and has_openat2() and _openat2 is not None:
            path = "/".join(names)
            if len(path) < _LONGEST:
                return _openat2(folder, path, flags)
        return _step_by_step(folder, names, flags)
    except OSError as error:
        if error.errno in _REFUSED:
            raise UnsafeFileError(
                f"{'/'.join(names)} is a link, lies behind one, or is of another kind; it was not opened."
            ) from error
        raise


def _step_by_step(folder: int, names: Sequence[str], flags: int) -> int:
    above = folder
    try:
        for name in names[:-1]:
            inner = os.open(name, _FOLDER, dir_fd=above)
            if above != folder:
                os.close(above)
            above = inner
        return os.open(names[-1], flags, dir_fd=above)
    finally:
        if above != folder:
            os.close(above)


def _usable_openat2() -> Open | None:
    """``openat2`` by its number, tried once; None where it is missing or a filter forbids it."""
    if sys.platform != "linux" or platform.machine() == "alpha":
        return None
    call = _bound_openat2()
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.close(call(root, ".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
    except OSError as error:
        if error.errno in _MISSING:
            return None
        raise
    finally:
        os.close(root)
    return call


def _bound_openat2() -> Open:
    import ctypes  # workers that never open a nested path do not pay for it

    class OpenHow(ctypes.Structure):
        _fields_ = tuple((name, ctypes.c_uint64) for name in ("flags", "mode", "resolve"))

    libc = ctypes.CDLL(None, use_errno=True)
    size = ctypes.c_size_t(ctypes.sizeof(OpenHow))
    number = ctypes.c_long(_SYS_OPENAT2)
    resolve = _RESOLVE_BENEATH | _RESOLVE_NO_SYMLINKS | _RESOLVE_NO_MAGICLINKS
    hows: dict[int, Any] = {}

    def call(folder: int, path: str, flags: int) -> int:
        how = hows.get(flags)
        if how is None:
            made = OpenHow(flags=flags, mode=0, resolve=resolve)
            how = hows[flags] = (made, ctypes.byref(made))
        name = os.fsencode(path)
        if b"\0" in name:
            raise ValueError("embedded null byte")
        for _ in range(_RETRIES):
            descriptor: int = libc.syscall(number, folder, ctypes.c_char_p(name), how[1], size)
            if descriptor >= 0:
                return descriptor
            number_of_error = ctypes.get_errno()
            if number_of_error not in (errno.EAGAIN, errno.EINTR):  # EAGAIN: a folder was moved meanwhile
                raise OSError(number_of_error, os.strerror(number_of_error), path)
        return _step_by_step(folder, path.split("/"), flags)

    return call


def _too_large(name: str, max_bytes: int) -> UnsafeFileError:
    return UnsafeFileError(f"{name} is larger than {max_bytes:,} bytes.", do="Look at the file.")
