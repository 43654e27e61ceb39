"""The folder of control sockets: below the home, or in the run-time folder where the home's own path is too long."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from pathlib import Path

from agents.runtime import programs
from neighborhoods.errors import MemberError

NAME_LENGTH = 12
_PATH_LIMIT = 80  # sun_path holds 104 bytes on some systems, and ssh adds 17 to a name while it binds
_STOP_SECONDS = 5


def socket_folder(folder: Path) -> Path:
    """Returns where the sockets of ``folder`` lie. Makes nothing."""
    if len(os.fsencode(folder)) + 1 + NAME_LENGTH <= _PATH_LIMIT:
        return folder
    run = Path(os.environ.get("XDG_RUNTIME_DIR") or "/tmp")  # noqa: S108 - 0700, and checked before use
    tag = hashlib.sha256(os.fsencode(folder)).hexdigest()[:NAME_LENGTH]
    return run / f"rappd-ssh-{tag}"


def make_private(folder: Path) -> None:
    """Makes it, for this account alone. Raises ``MemberError`` for one that others could have made."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if not _is_private(folder):
        raise MemberError(
            f"{folder} is not private to this account, so no connection is kept there.",
            do=f"Look at it, then remove it: rm -r {folder}",
        )


def control_path(socket: Path) -> str:
    """The option of ``ssh`` that names the socket."""
    return 'ControlPath="' + str(socket).replace("%", "%%") + '"'


def remove_socket_folder(folder: Path) -> None:
    """Leaves nothing in the run-time folder of what ``folder`` had there. Blocks.

    A connection ends once what runs over it is done; another process that uses it makes one of its own for what
    comes next.
    """
    place = socket_folder(folder)
    if place == folder or not place.exists() or not _is_private(place):
        return
    for socket in list(place.iterdir()):
        with contextlib.suppress(OSError, TimeoutError):  # it may be gone already, which is what is wanted
            stop = ["ssh", "-F", "none", "-o", control_path(socket), "-O", "stop", "--", "localhost"]
            programs.run(stop, home=True, seconds=_STOP_SECONDS)
        socket.unlink(missing_ok=True)  # that of a connection whose process was killed stays
    with contextlib.suppress(OSError):  # another process has made a connection meanwhile, and removes it
        place.rmdir()


def _is_private(folder: Path) -> bool:
    found = os.lstat(folder)
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
